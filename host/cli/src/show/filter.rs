//! Which operations the user wants to see.

use clap::Args;
use collander_event::Collective;

use super::table::CommunicatorInfo;
use crate::units::{parse_bytes, parse_duration};

/// The filters of `show`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub struct Filter {
    /// Only communicators whose name or label contains TEXT, or whose hash begins with it (repeatable)
    #[arg(long, value_name = "TEXT")]
    pub communicator: Vec<String>,
    /// Only this function, such as AllReduce (repeatable)
    #[arg(long, value_name = "NAME", value_parser = collective)]
    pub collective: Vec<Collective>,
    /// Only this rank of the communicator (repeatable)
    #[arg(long, value_name = "N")]
    pub rank: Vec<i32>,
    /// Only operations of at least so many bytes: 4096, 64KiB, 1MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub min_bytes: Option<u64>,
    /// Only operations that took longer: 500us, 2ms
    #[arg(long, value_name = "TIME", value_parser = nanoseconds)]
    pub slower_than: Option<u64>,
}

fn collective(text: &str) -> Result<Collective, String> {
    match Collective::from_text(text) {
        Collective::Unknown if !text.eq_ignore_ascii_case("unknown") => {
            let names: Vec<_> = Collective::ALL.iter().map(|c| c.name()).collect();
            Err(format!("one of {}", names.join(", ")))
        }
        collective => Ok(collective),
    }
}

fn nanoseconds(text: &str) -> Result<u64, String> {
    parse_duration(text).map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl Filter {
    /// Whether operations of this communicator are wanted.
    pub fn communicator(&self, info: &CommunicatorInfo) -> bool {
        self.communicator.is_empty()
            || self.communicator.iter().any(|text| {
                info.name.contains(text.as_str())
                    || info.label.contains(text.as_str())
                    || info.hash.as_deref().is_some_and(|hash| {
                        hash.trim_start_matches("0x").starts_with(text.trim_start_matches("0x")) && !text.is_empty()
                    })
            })
    }

    /// Whether this operation is wanted, apart from its communicator.
    pub fn operation(&self, collective: Collective, rank: i32, bytes: Option<u64>, duration_ns: Option<u64>) -> bool {
        (self.collective.is_empty() || self.collective.contains(&collective))
            && (self.rank.is_empty() || self.rank.contains(&rank))
            && self.min_bytes.is_none_or(|least| bytes.is_some_and(|bytes| bytes >= least))
            && self.slower_than.is_none_or(|least| duration_ns.is_some_and(|ns| ns > least))
    }

    /// Whether it takes anything away.
    pub fn is_active(&self) -> bool {
        !self.communicator.is_empty()
            || !self.collective.is_empty()
            || !self.rank.is_empty()
            || self.min_bytes.is_some()
            || self.slower_than.is_some()
    }
}
