#!/bin/sh
# A distributed training as a person starts it by hand: one directory per task, made beforehand
# with its file "environment" (TF_CONFIG and what the job reads). Usage:
#   by_hand.sh start|restart|kill|run FOLDER PYTHON JOB TASK...
# restart kills the tasks and starts them again at once, at the same addresses; run starts them,
# waits for the end of the first, which decides, and kills the others.
set -euf
verb=$1 folder=$2 python=$3 job=$4
shift 4

kill_tasks() {
  for task; do
    kill -KILL "$(cat "$folder/$task/pid")" 2>/dev/null || true
  done
}

case $verb in restart | kill) kill_tasks "$@" ;; esac
if [ "$verb" != kill ]; then
  for task; do
    cd "$folder/$task"
    env $(cat environment) "$python" -u "$job" </dev/null >>stdout 2>>stderr &
    echo $! >pid
  done
fi
if [ "$verb" = run ]; then
  code=0
  wait "$(cat "$folder/$1/pid")" || code=$?
  kill_tasks "$@"
  exit $code
fi
