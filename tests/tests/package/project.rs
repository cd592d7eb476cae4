//! A project of somebody who uses the package.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The top folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A file of this suite.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/package").join(name)
}

/// An empty project with the package installed.
pub(crate) struct Project {
    folder: TempDir,
    name: &'static str,
}

impl Project {
    /// `None` where the package was not built or Node.js is not there; then the skip is already announced.
    pub(crate) fn new() -> Option<Self> {
        Self::with("shared")
    }

    /// With another one of the packages.
    pub(crate) fn with(name: &'static str) -> Option<Self> {
        let built = root().join("target/dist/npm").join(name);
        if !built.join("package.json").is_file() {
            println!("SKIPPED: the npm package is not built, run cargo xtask packages");
            return None;
        }
        if Command::new("node").arg("--version").output().is_err() {
            println!("SKIPPED: Node.js is not installed");
            return None;
        }
        let project = Self { folder: tempfile::tempdir().unwrap(), name };
        fs::write(project.folder().join("package.json"), r#"{"type":"module","private":true}"#).unwrap();
        project.install(&built);
        Some(project)
    }

    /// As npm would: packed, and the archive unpacked. Without npm the folder is copied.
    fn install(&self, built: &Path) {
        let package = self.package();
        fs::create_dir_all(package.parent().unwrap()).unwrap();
        let mut pack = Command::new("npm");
        pack.current_dir(built).args(["pack", "--silent", "--offline", "--pack-destination"]);
        match pack.arg(self.folder()).output() {
            Ok(packed) => {
                assert!(packed.status.success(), "npm pack: {}", String::from_utf8_lossy(&packed.stderr));
                let archive = String::from_utf8(packed.stdout).unwrap().trim().to_owned();
                let mut unpack = Command::new("tar");
                run(unpack.current_dir(self.folder()).args(["-xzf", &archive]));
                fs::rename(self.folder().join("package"), package).unwrap();
            }
            Err(_) => run(Command::new("cp").arg("-r").arg(built).arg(&package)),
        }
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the package is in it.
    pub(crate) fn package(&self) -> PathBuf {
        self.folder().join("node_modules/@exitpilot").join(self.name)
    }

    /// Runs a script as a file of the project, so that it finds the package; it must succeed. Returns what it printed.
    pub(crate) fn node(&self, script: &Path, arguments: &[&Path]) -> String {
        let own = if script.starts_with(self.folder()) {
            script.to_owned()
        } else {
            let own = self.folder().join(script.file_name().unwrap());
            fs::copy(script, &own).unwrap();
            own
        };
        let mut node = Command::new("node");
        let output = node.current_dir(self.folder()).arg(own).args(arguments).output().unwrap();
        let (said, wrong) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}: {said}\n{wrong}", script.display());
        said.into_owned()
    }

    /// Compiles files of the project; they must compile. False where there is no TypeScript; then the skip is already
    /// announced.
    pub(crate) fn compile(&self, files: &[&str]) -> bool {
        let Some(modules) = typescript() else {
            println!("SKIPPED: TypeScript is not installed, run cargo xtask setup");
            return false;
        };
        let types = self.folder().join("node_modules/@types");
        if !types.exists() {
            run(Command::new("cp").arg("-r").arg(modules.join("@types")).arg(&types));
            run(Command::new("cp")
                .arg("-r")
                .arg(modules.join("csstype"))
                .arg(self.folder().join("node_modules")));
        }
        let is_page = files.iter().any(|file| file.ends_with(".tsx"));
        let options = serde_json::json!({
            "strict": true,
            "exactOptionalPropertyTypes": true,
            "noUncheckedIndexedAccess": true,
            "target": "es2022",
            "module": "nodenext",
            "moduleResolution": "nodenext",
            "jsx": "react-jsx",
            "outDir": "out",
            "lib": if is_page { vec!["es2022", "dom"] } else { vec!["es2022"] },
            // The package's types ask for nothing of a browser or of Node.js.
            "types": [],
        });
        let config = serde_json::json!({ "compilerOptions": options, "files": files });
        fs::write(self.folder().join("tsconfig.json"), config.to_string()).unwrap();
        let mut tsc = Command::new("node");
        tsc.current_dir(self.folder()).arg(modules.join("typescript/bin/tsc"));
        run(&mut tsc);
        true
    }
}

/// The folder `node_modules` that `cargo xtask setup` has put TypeScript into: `EXITPILOT_TYPESCRIPT_DIR`.
fn typescript() -> Option<PathBuf> {
    let modules = PathBuf::from(env::var_os("EXITPILOT_TYPESCRIPT_DIR")?).join("node_modules");
    modules.join("typescript/bin/tsc").is_file().then_some(modules)
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}\n{wrong}");
}
