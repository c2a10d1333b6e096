//! Who we are: the scheduler's job id, and the host's name.

use crate::env::Environment;

/// Id of a job that no scheduler named.
pub const UNKNOWN: &str = "unknown-jobid";

/// Schedulers' variables that hold an id, first match wins.
const IDS: [&str; 10] = [
    "SLURM_JOB_ID",
    "SLURM_JOBID",
    "PBS_JOBID",
    "LSB_JOBID",
    "FLUX_JOB_ID",
    "COBALT_JOBID",
    "AWS_BATCH_JOB_ID",
    "RAY_JOB_ID",
    "OAR_JOB_ID",
    "TRAINING_JOB_NAME",
];
/// In a Kubernetes pod: variables that manifests and operators set by convention. Kubernetes itself sets none.
const KUBERNETES: [&str; 7] =
    ["JOBSET_NAME", "PYTORCHJOB_NAME", "MPIJOB_NAME", "KUBERNETES_JOB_NAME", "K8S_JOB_NAME", "VC_JOB_NAME", "JOB_NAME"];
/// Roles in the pod names of the training operators: `<job>-worker-3`.
const ROLES: [&str; 6] = ["worker", "master", "launcher", "chief", "server", "node"];

/// The job's id and where it came from. The same on all ranks of a job, as far as the environment tells.
#[must_use]
pub fn detect(environment: &Environment) -> (String, String) {
    if let Some((name, id)) = first(environment, &IDS) {
        return (sanitise(id), name.to_owned());
    }
    if environment.os("KUBERNETES_SERVICE_HOST").is_some() {
        if let Some((name, id)) = first(environment, &KUBERNETES) {
            return (sanitise(id), name.to_owned());
        }
        if let Some(job) =
            environment.text("HOSTNAME").and_then(|pod| job_of_pod(pod, environment.text("JOB_COMPLETION_INDEX")))
        {
            return (sanitise(job), "HOSTNAME".to_owned());
        }
    }
    // torchrun's default is "none".
    match environment.text("TORCHELASTIC_RUN_ID").filter(|id| *id != "none") {
        Some(id) => (sanitise(id), "TORCHELASTIC_RUN_ID".to_owned()),
        None => (UNKNOWN.to_owned(), "none".to_owned()),
    }
}

fn first<'e>(environment: &'e Environment, names: &[&'static str]) -> Option<(&'static str, &'e str)> {
    names.iter().find_map(|name| environment.text(name).map(|id| (*name, id)))
}

/// The job in a pod's name: `<job>-<index>` of an indexed Job, `<job>-<role>-<number>` of a training operator.
fn job_of_pod<'p>(pod: &'p str, index: Option<&str>) -> Option<&'p str> {
    let (rest, number) = pod.rsplit_once('-')?;
    if index.is_some_and(|index| index == number) {
        return Some(rest);
    }
    let (job, role) = rest.rsplit_once('-')?;
    (ROLES.contains(&role) && !job.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(job)
}

/// A name as part of a path: what is `/`, a control character or white space becomes `_`, and so does a leading dot; at
/// most 128 bytes.
#[must_use]
pub fn sanitise(name: &str) -> String {
    let mut clean: String = name
        .trim()
        .chars()
        .map(|c| if c == '/' || c == '\\' || c.is_control() || c.is_whitespace() { '_' } else { c })
        .collect();
    if clean.starts_with('.') {
        clean.replace_range(..1, "_");
    }
    if clean.is_empty() {
        return UNKNOWN.to_owned();
    }
    while clean.len() > 128 {
        clean.pop();
    }
    clean
}

/// The system's host name.
#[must_use]
pub fn host(environment: &Environment) -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = kernel.as_deref().map(str::trim).filter(|name| !name.is_empty());
    name.or_else(|| environment.text("HOSTNAME")).map_or_else(|| "unknown-host".to_owned(), sanitise)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(variables: &[(&str, &str)]) -> (String, String) {
        detect(&variables.iter().copied().collect())
    }

    fn is(id: &str, source: &str) -> (String, String) {
        (id.to_owned(), source.to_owned())
    }

    #[test]
    fn schedulers() {
        assert_eq!(detected(&[("SLURM_JOB_ID", "42"), ("SLURM_JOBID", "41")]), is("42", "SLURM_JOB_ID"));
        assert_eq!(detected(&[("SLURM_JOBID", "41"), ("PBS_JOBID", "9")]), is("41", "SLURM_JOBID"));
        assert_eq!(detected(&[("PBS_JOBID", "1234[7].server")]), is("1234[7].server", "PBS_JOBID"));
        assert_eq!(detected(&[("LSB_JOBID", "77")]), is("77", "LSB_JOBID"));
        assert_eq!(detected(&[("TORCHELASTIC_RUN_ID", "run/5\n")]), is("run_5", "TORCHELASTIC_RUN_ID"));
        assert_eq!(detected(&[("TORCHELASTIC_RUN_ID", "none")]), is(UNKNOWN, "none"));
        assert_eq!(detected(&[("SLURM_JOB_ID", "")]), is(UNKNOWN, "none"));
    }

    #[test]
    fn kubernetes() {
        let inside = ("KUBERNETES_SERVICE_HOST", "10.0.0.1");
        assert_eq!(detected(&[("JOB_NAME", "ci")]), is(UNKNOWN, "none"));
        assert_eq!(detected(&[inside, ("JOB_NAME", "train")]), is("train", "JOB_NAME"));
        assert_eq!(
            detected(&[inside, ("HOSTNAME", "llm-7-3"), ("JOB_COMPLETION_INDEX", "3")]),
            is("llm-7", "HOSTNAME")
        );
        assert_eq!(detected(&[inside, ("HOSTNAME", "llm-worker-12")]), is("llm", "HOSTNAME"));
        assert_eq!(detected(&[inside, ("HOSTNAME", "web-7f9c-abcde")]), is(UNKNOWN, "none"));
    }

    #[test]
    fn names_fit_paths() {
        assert_eq!(sanitise("../a b\u{1}"), "_._a_b_");
        assert_eq!(sanitise(" "), UNKNOWN);
        assert_eq!(sanitise(&"é".repeat(100)).len(), 128);
    }
}
