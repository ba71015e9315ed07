//! Output of the readers in Rust: see dataset_lines.py.

/// The facts of one dataset.
#[derive(Default)]
pub struct Line {
    fields: Vec<String>,
    attributes: Vec<String>,
}

pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for unit in text.encode_utf16() {
        match char::from_u32(unit as u32) {
            Some(c) if (' '..='~').contains(&c) && c != '"' && c != '\\' => out.push(c),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out + "\""
}

fn joined(texts: &[String]) -> String {
    let cut: Vec<&str> = texts.iter().map(|each| each.trim_end_matches('\0')).collect();
    quoted(&cut.join("|"))
}

fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:?}") } else { quoted(&value.to_string()) }
}

pub fn wanted(name: &str) -> bool {
    let bytes = name.as_bytes();
    name == "title" || name == "units"
        || (bytes.len() == 3 && bytes[0] == b'a' && bytes[1..].iter().all(u8::is_ascii_digit))
}

impl Line {
    pub fn shape(&mut self, shape: &[u64]) {
        self.fields.push(format!("\"shape\": {shape:?}"));
    }

    pub fn numbers(&mut self, values: &[f64]) {
        let sum: f64 = values.iter().sum();
        let weighted: f64 = values.iter().enumerate().map(|(i, v)| v * (i + 1) as f64).sum();
        self.fields.push(format!("\"sum\": {}, \"weighted\": {}", number(sum), number(weighted)));
    }

    pub fn texts(&mut self, values: &[String]) {
        self.fields.push(format!("\"text\": {}", joined(values)));
    }

    pub fn attribute_numbers(&mut self, name: &str, values: &[f64]) {
        let values: Vec<String> = values.iter().map(|each| number(*each)).collect();
        self.attributes.push(format!("{}: [{}]", quoted(name), values.join(", ")));
    }

    pub fn attribute_texts(&mut self, name: &str, values: &[String]) {
        self.attributes.push(format!("{}: {}", quoted(name), joined(values)));
    }
}

/// Print one dataset's line, or the error with which `read` ends. A panic is an error, too.
pub fn say<E: std::fmt::Display>(
    file: &str, name: &str, read: impl FnOnce(&mut Line) -> Result<(), E>,
) {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut line = Line::default();
        read(&mut line).map(|()| line).map_err(|error| error.to_string())
    }));
    let start = format!("{{\"file\": {}, \"name\": {}", quoted(file), quoted(name));
    match result.unwrap_or_else(|_| Err("panic".to_string())) {
        Ok(line) => {
            let fields: String = line.fields.iter().map(|each| format!(", {each}")).collect();
            println!("{start}{fields}, \"attributes\": {{{}}}}}", line.attributes.join(", "));
        }
        Err(error) => println!("{start}, \"error\": {}}}", quoted(&error)),
    }
}

/// Answer `--version`, or call `walk` for each file of the command line.
pub fn read_files<E: std::fmt::Display>(version: &str, walk: impl Fn(&str) -> Result<(), E>) {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    if paths.first().map(String::as_str) == Some("--version") {
        return println!("{version}");
    }
    for path in &paths {
        if let Err(error) = walk(path) {
            say(path, "", |_| Err::<(), _>(error));
        }
        println!("{{\"file\": {}, \"end\": true}}", quoted(path));
    }
}
