"""What is lost if somebody takes these steps, now, on this cluster: a runbook explored from the state as it is.

    from isr_audit.descriptions import read_description
    from isr_audit.releases import running
    from isr_drill.drill import Explorations, drill
    from isr_drill.runbook import Surroundings, read_runbook

    topic = "Topic: orders  TopicId: x  PartitionCount: 1  ReplicationFactor: 3  Configs: min.insync.replicas=2"
    partition = "  Topic: orders  Partition: 0  Leader: 1  Replicas: 1,2,3  Isr: 1,2,3  Elr: "
    text = "".join(f"{line}{chr(10)}" for line in (topic, partition))
    cluster = read_description(text, "topics.txt")
    steps = read_runbook("replace 1; replace 2", Surroundings({1, 2, 3}, {}, ["orders"]))
    whole = drill(cluster, running(cluster, (4, 1), True), steps, Explorations(20.0))
    print([outcome.records for outcome in whole.partitions[0].outcomes])

Reading order: `reassignments` (files of a reassignment), `quorum` (controllers, by a rule), `runbook` (the steps that
people take), `record_fate` (the model: what becomes of one acknowledged record), `changes` (the model where replicas
and the minimum change), `exploration` (all that it reaches, phase by phase), `course` (what a runbook does to one
partition), `situation` (a partition as states of the model), `drill` (a cluster under a runbook), `outlook` (the
next deed at each broker), `story` (how a record is lost), `lanes` (brokers by step, for pictures).
"""
