"""Follows the documents, measures the retriever on the new version, and decides on it.

Belongs in the folder of DAGs; for Airflow 3 (in 2.x: `from airflow import DAG`, and
`airflow.operators.bash`). The workers need ragforge, the directory, and OPENAI_API_KEY in their
environment.
"""

from datetime import UTC, datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG(
    dag_id="ragforge_nightly",
    schedule="@@{minute} @@{hour} * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"cwd": "@@{directory}", "retries": 0},
):
    # Exit code 4: the endpoint is down. Tried again after 30 minutes, twice at most; no call is
    # bought twice. `retries` would repeat a failed check (1) and broken pins (2) as well: Airflow
    # does not look at the exit code, so that the loop stands in the command.
    # Exit code 5: the budget is used up. The task is skipped; the next night goes on from there.
    refresh = BashOperator(
        task_id="refresh",
        bash_command="for pause in 0 1800 1800; do sleep $pause; code=0;"
        " @@{program} refresh --quiet --config @@{config} --dataset @@{dataset} || code=$?;"
        " [ $code -eq 4 ] || break; done; exit $code",
        skip_on_exit_code=5,
    )
    evaluate = BashOperator(
        task_id="evaluate",
        bash_command="@@{program} evaluate --quiet --config @@{config} --dataset @@{dataset}"
        " --retriever @@{retriever} --name @@{run}",
        trigger_rule="none_failed",
    )
    report = BashOperator(
        task_id="report",
        bash_command="@@{program} report --quiet --config @@{config} --dataset @@{dataset}"
        " --out @@{report}",
    )
    gate = BashOperator(
        task_id="gate",
        bash_command="@@{program} gate --quiet --config @@{config} --dataset @@{dataset}"
        " --run @@{run} @@{gate}",
    )
    refresh >> evaluate >> report >> gate
