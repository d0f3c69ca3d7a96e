#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = opticoll_fuzz::check("mscclpp", bytes);
});
