// The table can be searched, and the map says what lies under the pointer.
(() => {
  const find = document.getElementById("find");
  const rows = [...(document.getElementById("files")?.rows ?? [])];
  const texts = rows.map((row) => (row.textContent + " " + row.lastChild.title).toLowerCase());
  find?.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, at) => {
      row.hidden = !words.every((word) => texts[at].includes(word));
      count += !row.hidden;
    });
    const noun = count === 1 ? "file" : "files";
    document.getElementById("found").textContent = `${count.toLocaleString("en")} ${noun}`;
  });

  const map = document.querySelector(".map");
  const tip = document.getElementById("tip");
  if (!map || !tip) return;
  const kinds = map.dataset.kinds.split(";");
  const [start, cell, columns, lines, end] =
    ["start", "cell", "columns", "lines", "end"].map((name) => Number(map.dataset[name]));
  const here = map.appendChild(document.createElement("i"));
  here.className = "here";
  here.hidden = true;
  const clear = () => {
    here.hidden = true;
    tip.style.display = "none";
  };
  const show = (event) => {
    const box = map.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / box.width * columns);
    const line = Math.floor((event.clientY - box.top) / box.height * lines);
    const index = line * columns + column;
    const from = start + index * cell;
    if (column < 0 || column >= columns || line < 0 || from >= end) return clear();
    here.hidden = false;
    here.style.cssText = `left:${100 * column / columns}%;top:${100 * line / lines}%;` +
      `width:${100 / columns}%;height:${100 / lines}%`;
    const to = Math.min(from + cell, end);
    tip.textContent = `${kinds[index] || "nothing found"}\n` +
      `0x${from.toString(16)} – 0x${to.toString(16)}`;
    tip.style.display = "block";
    const left = event.clientX + 14;
    const fits = left + tip.offsetWidth < document.documentElement.clientWidth;
    tip.style.left = Math.max(4, fits ? left : event.clientX - 14 - tip.offsetWidth) + "px";
    tip.style.top = event.clientY + 16 + "px";
  };
  map.addEventListener("pointermove", show);
  map.addEventListener("pointerdown", show);
  map.addEventListener("pointerleave", clear);
})();
