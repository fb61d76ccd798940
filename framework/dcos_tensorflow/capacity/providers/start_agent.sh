#!/bin/sh
# What a machine on EC2 runs first, as root: it becomes a Mesos agent that says what it is.
#
# `agent_script.user_data` puts the variables before it. Only MASTER must be set:
#   MASTER        as mesos-agent --master takes it: host:port, or zk://...
#   INSTALL       shell commands that install Mesos; not run where mesos-agent is there already
#   AGENT_FLAGS   more flags of mesos-agent, split at spaces
#   WORK_DIR      where the agent keeps its state and the tasks' sandboxes
#   METADATA      where the instance metadata service is
set -eu

: "${MASTER:?where the Mesos master is}"
: "${INSTALL:=}" "${AGENT_FLAGS:=}" "${WORK_DIR:=/var/lib/mesos/agent}"
: "${METADATA:=http://169.254.169.254}"

ask() {
    curl --silent --show-error --fail --noproxy '*' --max-time 10 \
        --retry 10 --retry-connrefused --retry-delay 1 "$@"
}

token=$(ask --request PUT --header 'X-aws-ec2-metadata-token-ttl-seconds: 300' \
    "$METADATA/latest/api/token")

fact() {
    ask --header "X-aws-ec2-metadata-token: $token" "$METADATA/latest/meta-data/$1"
}

type=$(fact instance-type)
zone=$(fact placement/availability-zone)
market=$(fact instance-life-cycle)
address=$(fact local-ipv4)
purchase=$(fact tags/instance/dcos-tensorflow:purchase)
price=$(fact tags/instance/dcos-tensorflow:price)

command -v mesos-agent >/dev/null || sh -c "$INSTALL"
mkdir -p "$WORK_DIR"

set -- \
    --master="$MASTER" \
    --work_dir="$WORK_DIR" \
    --ip="$address" \
    --hostname="$address" \
    --attributes="instance_type:$type;zone:$zone;market:$market;price:$price;purchase_id:$purchase"
# shellcheck disable=SC2086  # They are several flags.
exec mesos-agent "$@" $AGENT_FLAGS
