(* The two kernels of python/parallel.py with OCaml's Parmap: forked workers that fill a shared
   mapping. parmap FILE FILE BYTES WORKERS; then a line of input asks for a run, as there. *)

type output = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t

let halo = 5
let chunk = 1 lsl 18

let read path bytes =
  let channel = open_in_bin path in
  let input = Bytes.create bytes in
  really_input channel input 0 bytes;
  close_in channel;
  input

(* A mapping of a nameless file, which the workers share. *)
let shared bytes : output =
  let path = Filename.temp_file ~temp_dir:"/dev/shm" "quarrier" ".parmap" in
  let file = Unix.openfile path [ Unix.O_RDWR ] 0o600 in
  Unix.unlink path;
  let mapped = Unix.map_file file Bigarray.char Bigarray.c_layout true [| bytes |] in
  Unix.close file;
  Bigarray.array1_of_genarray mapped

let at bytes index = Char.code (Bytes.unsafe_get bytes index)

let mean_of_two a b (out : output) first last =
  for index = first to last - 1 do
    Bigarray.Array1.unsafe_set out index (Char.unsafe_chr ((at a index + at b index) lsr 1))
  done

(* Running sums; values beyond the ends are zero. *)
let window_means a b (out : output) first last =
  let length = Bytes.length a in
  let value bytes index = if index < 0 || index >= length then 0 else at bytes index in
  let sum bytes =
    let sum = ref 0 in
    for index = first - halo to first + halo - 1 do
      sum := !sum + value bytes index
    done;
    !sum
  in
  let sum_a = ref (sum a) and sum_b = ref (sum b) in
  for index = first to last - 1 do
    sum_a := !sum_a + value a (index + halo);
    sum_b := !sum_b + value b (index + halo);
    let mean = ((!sum_a / 11) + (!sum_b / 11)) lsr 1 in
    Bigarray.Array1.unsafe_set out index (Char.unsafe_chr mean);
    sum_a := !sum_a - value a (index - halo);
    sum_b := !sum_b - value b (index - halo)
  done

let fill kernel a b workers (out : output) =
  let bytes = Bytes.length a in
  let count = (bytes + chunk - 1) / chunk in
  let starts = List.init count (fun number -> number * chunk) in
  let work = if kernel = "k1" then mean_of_two a b out else window_means a b out in
  Parmap.pariter ~ncores:workers ~chunksize:16
    (fun first -> work first (min bytes (first + chunk)))
    (Parmap.L starts)

let answer kernel pages a b workers kept =
  if pages = "warm" then ignore (Lazy.force kept);
  let start = Unix.gettimeofday () in
  let out = if pages = "warm" then Lazy.force kept else shared (Bytes.length a) in
  fill kernel a b workers out;
  Printf.printf "{\"seconds\": %.9f}\n%!" (Unix.gettimeofday () -. start);
  if pages <> "warm" then Gc.full_major ()

let check kernel a b workers warm =
  fill kernel a b workers warm;
  let sum = ref 0 and weighted = ref 0 in
  for index = 0 to Bytes.length a - 1 do
    let value = Char.code (Bigarray.Array1.unsafe_get warm index) in
    sum := !sum + value;
    weighted := !weighted + (value * (index land 255))
  done;
  Printf.printf "{\"sum\": %d, \"weighted\": %d}\n%!" !sum !weighted

let () =
  Parmap.debugging false;
  let bytes = int_of_string Sys.argv.(3) and workers = int_of_string Sys.argv.(4) in
  let a = read Sys.argv.(1) bytes and b = read Sys.argv.(2) bytes in
  let kept =
    lazy
      (let touched = shared bytes in
       Bigarray.Array1.fill touched '\001';
       touched)
  in
  try
    while true do
      match String.split_on_char ' ' (input_line stdin) with
      | [ "check"; kernel ] -> check kernel a b workers (Lazy.force kept)
      | [ kernel; pages ] -> answer kernel pages a b workers kept
      | _ -> failwith "two words make a line"
    done
  with End_of_file -> ()
