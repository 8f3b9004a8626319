# A Slurm of its own for a test: munged, slurmctld and slurmd of Debian on the loopback, all files in a folder of their own, all
# processes this user's.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # scratch is of lib.sh
PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd sbatch scontrol; do
    command -v $program > /dev/null || { echo "no $program: \`make deps\`, or apt-get install slurm-wlm, brings it"; exit 77; }
done
slurm=$(mktemp -d /tmp/attest_slurm.XXXXXX) slurm_pids=() # a socket's path must be short, and munged wants its folders to be nobody else's
trap 'slurm_down; rm -rf "$scratch" "$slurm"' EXIT

free_port() { # FIRST: the first from there on that nobody listens on
    local port=$1
    while (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; do port=$((port + 1)); done
    echo "$port"
}
slurm_down() {
    local pid
    [[ ! -e "$slurm/slurm.conf" ]] || scancel --user="$(id -un)" 2> /dev/null
    for pid in "${slurm_pids[@]}"; do kill "$pid" 2> /dev/null; done
    for pid in "${slurm_pids[@]}"; do wait "$pid" 2> /dev/null; done
    slurm_pids=()
}
slurm_said() { tail -n 5 "$slurm"/*.out "$slurm"/*.log 2> /dev/null; }

# until_true SECONDS command...: a busy machine may take long; what never comes true ends the test.
until_true() {
    local most=$((10 * $1)); shift
    for ((; most > 0; most--)); do "$@" && return 0; sleep 0.1; done
    return 1
}
is_idle() { [[ "$(sinfo -h -o %t 2> /dev/null)" == idle ]]; }

slurm_up() { # PROCESSORS that the node says it has
    local host user port
    host=$(hostname -s) user=$(id -un) port=$((20000 + $$ % 20000))
    chmod 711 "$slurm"; mkdir "$slurm/state" "$slurm/spool"
    (umask 077; head -c 128 /dev/urandom > "$slurm/munge.key")
    munged --foreground --num-threads=1 --key-file="$slurm/munge.key" --socket="$slurm/munge.socket" --pid-file="$slurm/munged.pid" \
        --seed-file="$slurm/munged.seed" --log-file="$slurm/munged.log" > "$slurm/munged.out" 2>&1 &
    slurm_pids+=($!)
    port=$(free_port "$port")
    cat > "$slurm/slurm.conf" << CONF
ClusterName=attest
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
SlurmctldPort=$port
SlurmdPort=$(free_port $((port + 1)))
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$slurm/munge.socket
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=2
SlurmdParameters=config_overrides
KillWait=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$1 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
    export SLURM_CONF=$slurm/slurm.conf
    slurmctld -D -f "$SLURM_CONF" > "$slurm/slurmctld.out" 2>&1 &
    slurm_pids+=($!)
    slurmd -D -f "$SLURM_CONF" > "$slurm/slurmd.out" 2>&1 &
    slurm_pids+=($!)
    until_true 120 is_idle && return 0
    slurm_said
    return 1
}

state_of() { scontrol -o show job "$1" 2> /dev/null | sed -n 's/.* JobState=\([A-Z]*\).*/\1/p' | sort -u | tr '\n' ' '; }
has_ended() { # also of what will never begin
    [[ "$(scontrol -o show job "$1" 2> /dev/null)" != *Reason=DependencyNeverSatisfied* ]] || return 0
    [[ "$(state_of "$1")" =~ ^((COMPLETED|FAILED|CANCELLED|TIMEOUT|BOOT_FAIL|NODE_FAIL)\ )+$ ]]
}
# Slurm holds what was requeued back for two minutes; an operator would not wait either. (But a while: slurmd
# refuses a job in the second in which it killed it.)
has_restarted() { [[ "$(scontrol -o show job "$1" 2> /dev/null)" =~ JobState=(RUNNING|COMPLETED|FAILED)\ .*Restarts=[1-9] ]]; }
restart_now() { has_restarted "$1" || { scontrol update JobId="$1" StartTime=now 2> /dev/null; return 1; }; }
