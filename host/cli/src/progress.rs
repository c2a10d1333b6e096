//! A progress bar on stderr, only where someone sees it.

use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Characters of the bar.
const WIDTH: usize = 30;

/// One bar.
#[derive(Debug)]
pub struct Bar {
    what: &'static str,
    shown: bool,
    drawn: Option<Instant>,
}

impl Bar {
    /// A bar that is drawn if `shown`.
    pub const fn new(what: &'static str, shown: bool) -> Self {
        Self { what, shown, drawn: None }
    }

    /// Draws the share that is done, 0 to 1, at most 20 times a second.
    pub fn update(&mut self, share: f64) {
        let recent = self.drawn.is_some_and(|drawn| drawn.elapsed() < Duration::from_millis(50));
        if self.shown && !recent {
            self.drawn = Some(Instant::now());
            let _ = write!(io::stderr(), "\r{}", text(self.what, share));
        }
    }

    /// Wipes it.
    pub fn finish(&mut self) {
        if self.shown && self.drawn.take().is_some() {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

fn text(what: &str, share: f64) -> String {
    let share = share.clamp(0.0, 1.0);
    let full = (share * WIDTH as f64).round() as usize;
    format!("{what} [{}{}] {:3.0} %", "█".repeat(full), "·".repeat(WIDTH - full), share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_never_overflows() {
        assert!(text("x", 0.5).contains("50 %"));
        for share in [-1.0, 0.0, 1.0, 2.0] {
            assert_eq!(text("x", share).chars().filter(|c| "█·".contains(*c)).count(), WIDTH);
        }
    }
}
