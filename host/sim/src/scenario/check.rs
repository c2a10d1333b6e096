//! Whether a scenario makes sense; messages name the key, its value and what was expected.

use collander_event::{Collective, Datatype};

use super::{OperationSpec, Scenario};

impl Scenario {
    /// Checks everything that types do not say.
    pub(super) fn check(&self) -> Result<(), String> {
        expect((1..=4096).contains(&self.ranks), "ranks", self.ranks, "1 to 4096")?;
        let node = self.node_size();
        expect(self.ranks.is_multiple_of(node), "ranks_per_node", node, "a divisor of `ranks`")?;
        expect(self.steps >= 1, "steps", self.steps, "at least 1")?;
        expect(self.realtime >= 0.0 && self.realtime <= 1000.0, "realtime", self.realtime, "0 to 1000")?;
        expect(matches!(self.gpu_timer_ns, 1 | 10), "gpu_timer_ns", self.gpu_timer_ns, "1 or 10")?;
        time("compute_us", self.compute_us)?;
        let speed = &self.speed;
        for (key, value) in [("intra_node_gb_s", speed.intra_node_gb_s), ("inter_node_gb_s", speed.inter_node_gb_s)] {
            expect(value > 0.0 && value < 1e6, &format!("speed.{key}"), value, "more than 0")?;
        }
        time("speed.latency_us", speed.latency_us)?;
        expect((0.0..=1.0).contains(&speed.noise), "speed.noise", speed.noise, "0 to 1")?;
        self.check_communicators()?;
        if self.operation.is_empty() {
            return Err("there is no [[operation]]; expected at least one".to_owned());
        }
        for (n, operation) in self.operation.iter().enumerate() {
            self.check_operation(operation).map_err(|problem| format!("operation {n}: {problem}"))?;
        }
        self.check_troubles()
    }

    fn check_communicators(&self) -> Result<(), String> {
        if self.communicator.is_empty() {
            return Err("there is no [[communicator]]; expected at least one".to_owned());
        }
        for (n, group) in self.communicator.iter().enumerate() {
            let size = group.size.unwrap_or(self.ranks);
            let key = format!("communicator `{}`", group.name);
            if self.communicator[..n].iter().any(|other| other.name == group.name) {
                return Err(format!("{key} is there twice; expected names that differ"));
            }
            let block = u64::from(size) * u64::from(group.stride);
            let fits = block > 0 && u64::from(self.ranks).is_multiple_of(block);
            expect(fits, &format!("{key}: size × stride"), block, "a divisor of `ranks`")?;
        }
        Ok(())
    }

    fn check_operation(&self, operation: &OperationSpec) -> Result<(), String> {
        let OperationSpec { communicator, function, datatype, count, bytes, channels, .. } = operation;
        let names: Vec<_> = self.communicator.iter().map(|group| group.name.as_str()).collect();
        expect(names.contains(&communicator.as_str()), "communicator", communicator, &format!("one of {names:?}"))?;
        let known = ["AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "SendRecv"];
        expect(known.contains(&function.as_str()), "function", function, &known.join(", "))?;
        let size = Datatype::from_text(datatype).size();
        expect(size > 0, "datatype", datatype, "NCCL's name, as ncclFloat32 or ncclBfloat16")?;
        if count.is_some() == bytes.is_some() {
            return Err("expected either `count` or `bytes`".to_owned());
        }
        expect((1..=64).contains(channels), "channels", channels, "1 to 64")?;
        let reporting = operation.kernel_channels.unwrap_or(*channels);
        expect(reporting <= *channels, "kernel_channels", reporting, "at most `channels`")?;
        expect(operation.repeat >= 1 && operation.repeat <= 100_000, "repeat", operation.repeat, "1 to 100000")?;
        expect(operation.every >= 1, "every", operation.every, "at least 1")?;
        expect(operation.root < self.ranks, "root", operation.root, "a rank")?;
        time("compute_us", operation.compute_us)?;
        let kinds = [operation.graph, operation.copy_engine, operation.api_only, operation.symmetric];
        if kinds.iter().filter(|kind| **kind).count() > 1 {
            return Err("expected at most one of `graph`, `copy_engine`, `api_only`, `symmetric`".to_owned());
        }
        if operation.is_p2p() && (operation.copy_engine || operation.symmetric || operation.api_only) {
            return Err("SendRecv cannot be `copy_engine`, `symmetric` or `api_only`".to_owned());
        }
        Ok(())
    }

    fn check_troubles(&self) -> Result<(), String> {
        for straggler in &self.straggler {
            expect(straggler.rank < self.ranks, "straggler.rank", straggler.rank, "a rank")?;
            expect(straggler.every >= 1, "straggler.every", straggler.every, "at least 1")?;
            time("straggler.extra_ms", straggler.extra_ms)?;
        }
        if let Some(hang) = &self.hang {
            expect(hang.rank < self.ranks, "hang.rank", hang.rank, "a rank")?;
            expect(hang.step < self.steps, "hang.step", hang.step, "a step")?;
            expect(hang.operation < self.operation.len(), "hang.operation", hang.operation, "an operation's place")?;
            time("hang.wait_ms", hang.wait_ms)?;
        }
        for link in &self.slow_link {
            expect(link.factor >= 1.0, "slow_link.factor", link.factor, "at least 1")?;
            expect(link.from_step < link.to_step, "slow_link.to_step", link.to_step, "more than `from_step`")?;
            if let Some(name) = &link.communicator {
                let known = self.communicator.iter().any(|group| group.name == *name);
                expect(known, "slow_link.communicator", name, "the name of a communicator")?;
            }
            for rank in &link.ranks {
                expect(*rank < self.ranks, "slow_link.ranks", rank, "ranks")?;
            }
        }
        if let Some(abort) = &self.abort {
            expect(abort.step < self.steps, "abort.step", abort.step, "a step")?;
        }
        Ok(())
    }
}

impl OperationSpec {
    /// Whether it is made of sends and receives.
    pub(crate) fn is_p2p(&self) -> bool {
        self.function == "SendRecv"
    }

    /// Bytes an element.
    pub(crate) fn element_bytes(&self) -> u64 {
        u64::from(Datatype::from_text(&self.datatype).size())
    }

    /// Elements as the user's call says them, in a communicator of so many ranks.
    pub(crate) fn elements(&self, ranks: u32) -> u64 {
        let whole = self.element_bytes() * Collective::from_text(&self.function).size_factor(ranks);
        self.count.unwrap_or_else(|| self.bytes.unwrap_or(0) / whole.max(1))
    }

    /// Bytes that its bandwidth is computed from.
    pub(crate) fn message_bytes(&self, ranks: u32) -> u64 {
        self.elements(ranks) * self.element_bytes() * Collective::from_text(&self.function).size_factor(ranks)
    }
}

fn expect(holds: bool, key: &str, value: impl std::fmt::Display, expected: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("`{key}` is {value}; expected {expected}")) }
}

fn time(key: &str, value: f64) -> Result<(), String> {
    expect((0.0..=1e9).contains(&value), key, value, "a time of 0 to 10^9")
}
