//! Makes sure that the folder of the built page exists: the panel compiles without it and then says what is missing.

fn main() -> std::io::Result<()> {
    let site = std::path::Path::new("../target/site");
    std::fs::create_dir_all(site)?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../target/site");
    Ok(())
}
