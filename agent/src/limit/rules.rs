//! The lines of limiters, in GOST's form: `$ 10MB 10MB`, `$$ 1MB`, `192.0.2.0/24 512KB 1MB`, `$ 1000`.

use super::bucket::Rate;
use crate::metadata::ConfigError;
use ipnet::IpNet;
use std::net::IpAddr;

/// Lines of one limiter; each connection looks through them once.
const MOST_LINES: usize = 4096;

/// What a limiter's lines say; `T` is the limit of one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules<T> {
    /// `$`: everything together.
    pub all: Option<T>,
    /// `$$`: each connection (traffic), or each address that has no line of its own (connections, rates).
    pub each: Option<T>,
    /// An address or a network: each address in it. The longest prefix comes first.
    nets: Vec<(IpNet, T)>,
}

impl<T> Default for Rules<T> {
    fn default() -> Self {
        Self { all: None, each: None, nets: Vec::new() }
    }
}

/// The two limits of a traffic line, in bytes per second. `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// What the service receives from clients.
    pub input: Option<Rate>,
    /// What it sends to them.
    pub output: Option<Rate>,
}

impl<T: Copy> Rules<T> {
    /// The line for an address: its own, or that of the smallest network around it.
    pub fn of(&self, ip: IpAddr) -> Option<T> {
        let ip = ip.to_canonical();
        self.nets.iter().find(|(net, _)| net.contains(&ip)).map(|(_, limit)| *limit)
    }

    fn parse(
        path: &str,
        lines: &[String],
        values: impl Fn(&[&str]) -> Result<T, String>,
    ) -> Result<Self, ConfigError> {
        if lines.len() > MOST_LINES {
            return Err(ConfigError::new(format!("{path}: limits"), format!("more than {MOST_LINES} lines")));
        }
        let mut rules = Self::default();
        for (i, line) in lines.iter().enumerate() {
            let wrong = |reason: String| ConfigError::new(format!("{path}: limits[{i}]"), reason);
            let mut words = line.split_whitespace();
            let scope = words.next().ok_or_else(|| wrong("is empty".to_owned()))?;
            let rest: Vec<_> = words.collect();
            let limit = values(&rest).map_err(wrong)?;
            let twice = || wrong(format!("{scope} is there twice"));
            match scope {
                "$" if rules.all.is_some() => return Err(twice()),
                "$" => rules.all = Some(limit),
                "$$" if rules.each.is_some() => return Err(twice()),
                "$$" => rules.each = Some(limit),
                other => {
                    let net = network(other).map_err(wrong)?;
                    if rules.nets.iter().any(|(known, _)| *known == net) {
                        return Err(twice());
                    }
                    rules.nets.push((net, limit));
                }
            }
        }
        rules.nets.sort_by_key(|(net, _)| std::cmp::Reverse(net.prefix_len()));
        Ok(rules)
    }
}

impl Rules<Rates> {
    /// Traffic: `<scope> <in> [out]`. Zero, a negative size or none means no limit.
    pub fn traffic(path: &str, lines: &[String]) -> Result<Self, ConfigError> {
        Self::parse(path, lines, |values| match values {
            [input] => Ok(Rates { input: size(input)?, output: None }),
            [input, output] => Ok(Rates { input: size(input)?, output: size(output)? }),
            _ => Err("is not `<scope> <in> [out]` such as `$ 10MB 10MB`".to_owned()),
        })
    }
}

impl Rules<Option<u64>> {
    /// Open connections: `<scope> <count>`. Zero or less means no limit.
    pub fn connections(path: &str, lines: &[String]) -> Result<Self, ConfigError> {
        Self::parse(path, lines, |values| match values {
            [count] => {
                let count: i64 = count.parse().map_err(|_| format!("`{count}` is not a whole number"))?;
                Ok(u64::try_from(count).ok().filter(|count| *count > 0))
            }
            _ => Err("is not `<scope> <count>` such as `$ 1000`".to_owned()),
        })
    }
}

impl Rules<Option<Rate>> {
    /// New connections per second: `<scope> <rate>`. Zero or less means no limit.
    pub fn rates(path: &str, lines: &[String]) -> Result<Self, ConfigError> {
        Self::parse(path, lines, |values| match values {
            [rate] => match rate.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Rate::per_second(number)),
                _ => Err(format!("`{rate}` is not a number")),
            },
            _ => Err("is not `<scope> <rate>` such as `$ 100`".to_owned()),
        })
    }
}

fn network(text: &str) -> Result<IpNet, String> {
    let wrong = || format!("`{text}` is not `$`, `$$`, an address or a network such as 192.0.2.0/24");
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(IpNet::from(ip.to_canonical()));
    }
    Ok(text.parse::<IpNet>().map_err(|_| wrong())?.trunc())
}

/// A size per second as GOST reads it: units are powers of 1024.
///
/// A number without unit is refused: GOST takes it for no limit at all.
fn size(text: &str) -> Result<Option<Rate>, String> {
    let wrong = || format!("`{text}` is not a size such as 512KB, 1.5MB or 1GB");
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let factor: f64 = match unit.to_ascii_uppercase().as_str() {
        "B" => 1.0,
        "KB" | "KIB" => 1024.0,
        "MB" | "MIB" => 1024.0 * 1024.0,
        "GB" | "GIB" => 1024.0 * 1024.0 * 1024.0,
        "TB" | "TIB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "" if number <= 0.0 => 1.0,
        _ => return Err(wrong()),
    };
    Ok(Rate::per_second(number * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    fn bytes(n: f64) -> Option<Rate> {
        Rate::per_second(n)
    }

    #[test]
    fn sizes() {
        let known = [
            ("1B", 1.0),
            ("512KB", 524_288.0),
            ("1.5MB", 1_572_864.0),
            ("12.5MB", 13_107_200.0),
            ("1GB", 1_073_741_824.0),
            ("2TiB", 2_199_023_255_552.0),
            ("1kb", 1024.0),
        ];
        for (text, expected) in known {
            assert_eq!(size(text), Ok(bytes(expected)), "{text}");
        }
        for none in ["0", "0B", "-1", "-5MB", "0.0MB"] {
            assert_eq!(size(none), Ok(None), "{none}");
        }
        for wrong in ["", "MB", "1", "1M", "1 MB", "1e3MB", "fastMB", "1MB/s", "NaNB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_peers_send_is_understood() {
        let rules = Rules::traffic("limiter 5", &lines(&["$ 12.5MB 12.5MB"])).unwrap();
        let rate = bytes(13_107_200.0);
        assert_eq!(rules.all, Some(Rates { input: rate, output: rate }));
        let rules = Rules::traffic("limiter 5", &lines(&["0.0.0.0/0 1MB 2MB", "::/0 1MB 2MB"])).unwrap();
        for ip in ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"] {
            let expected = Rates { input: bytes(1_048_576.0), output: bytes(2_097_152.0) };
            assert_eq!(rules.of(ip.parse().unwrap()), Some(expected), "{ip}");
        }
        let rules = Rules::connections("climiter c", &lines(&["$ 100", "$$ 5"])).unwrap();
        assert_eq!((rules.all, rules.each), (Some(Some(100)), Some(Some(5))));
        let rules = Rules::rates("rlimiter r", &lines(&["$  0.5", "$$ 0"])).unwrap();
        assert_eq!((rules.all, rules.each), (Some(bytes(0.5)), Some(None)));
    }

    #[test]
    fn the_smallest_network_counts() {
        let text = ["10.0.0.0/8 1", "10.1.2.3 3", "10.1.77.9/16 2", "::/0 9"];
        let rules = Rules::connections("climiter c", &lines(&text)).unwrap();
        let of = |ip: &str| rules.of(ip.parse().unwrap()).flatten();
        assert_eq!(of("10.9.9.9"), Some(1));
        assert_eq!(of("10.1.9.9"), Some(2));
        assert_eq!(of("10.1.2.3"), Some(3));
        assert_eq!(of("::ffff:10.1.2.3"), Some(3));
        assert_eq!(of("192.0.2.1"), None);
        assert_eq!(of("2001:db8::1"), Some(9));
    }

    #[test]
    fn errors_name_the_line() {
        let cases = [
            (vec!["$ 1MB", ""], "limiter 5: limits[1]: is empty"),
            (vec!["$"], "limiter 5: limits[0]: is not `<scope> <in> [out]`"),
            (vec!["$ 1MB 1MB 1MB"], "limiter 5: limits[0]: is not `<scope> <in> [out]`"),
            (vec!["$ 1MB", "$ 2MB"], "limiter 5: limits[1]: $ is there twice"),
            (vec!["$ 100"], "limiter 5: limits[0]: `100` is not a size"),
            (vec!["everybody 1MB"], "limiter 5: limits[0]: `everybody` is not `$`"),
            (vec!["10.0.0.0/8 1MB", "10.9.0.0/8 2MB"], "limiter 5: limits[1]: 10.9.0.0/8 is there twice"),
            (vec!["10.0.0.0/33 1MB"], "limiter 5: limits[0]: `10.0.0.0/33` is not"),
        ];
        for (text, expected) in cases {
            let error = Rules::traffic("limiter 5", &lines(&text)).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error} instead of {expected}");
        }
        assert!(Rules::connections("c", &lines(&["$ 1.5"])).is_err());
        assert!(Rules::rates("r", &lines(&["$ inf"])).is_err());
        assert!(Rules::rates("r", &vec!["$ 1".to_owned(); MOST_LINES + 1]).is_err());
    }
}
