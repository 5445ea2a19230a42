"""What a cluster can lose: its description, the model's answers about topics like its own, and how it is now.

    from isr_audit.answers import read_table
    from isr_audit.audit import AnswerSource, audit_rows, no_exploration
    from isr_audit.descriptions import read_description
    from isr_audit.releases import running

    topic = "Topic: orders  PartitionCount: 1  ReplicationFactor: 3  Configs: min.insync.replicas=2"
    partition = "  Topic: orders  Partition: 0  Leader: 1  Replicas: 1,2,3  Isr: 1,2,3"
    text = "".join(f"{line}{chr(10)}" for line in (topic, partition))
    cluster = read_description(text, "topics.txt")      # or live.read_cluster(bootstrap, {})
    rows = audit_rows(cluster, running(cluster), AnswerSource(read_table(), no_exploration))
    print([(line.acks, line.fault.name, line.verdict) for row in rows for line in row.lines])

Reading order: `cluster` (what a cluster is, and which value of a setting holds), `topic_lines` (lines as a tool printed
them), `properties` (as Java has them), `json_texts` and `deployments` (JSON, and what people deploy Kafka with),
`descriptions` (the texts of Kafka's tools), `live` and `live_replicas` (an admin client), `contradictions` (what was
told of the release and cannot all be so), `releases` (which design runs), `questions` (what is asked of it), `answers`
(what the model says), `coarse` (of more replicas), `kinds` (what topics have in common), `changes` (other settings),
`release_losses` (what the release itself loses), `audit` (rows of all these, worst first), `condition` (how it is now),
`bugs` (what is known of the release), `voters` (what an empty disk of a controller is
worth), `advice` (a change as steps that can be followed), `report` (all of it as one record).
"""
