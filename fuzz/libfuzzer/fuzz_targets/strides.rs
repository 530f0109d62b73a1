#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    quarrier_fuzz::strides::run(bytes);
});
