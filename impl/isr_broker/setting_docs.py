"""What each setting does here, a sentence each: DescribeConfigs says it to whoever asks for documentation (KIP-569)."""

from __future__ import annotations

from typing import Final

DOCUMENTATION: Final = {
    "min.insync.replicas": "Replicas that have to be in sync for a write with acks=all, and since KIP-966 to commit.",
    "default.replication.factor": "Replicas of a partition of a topic that is created without saying how many.",
    "num.partitions": "Partitions of a topic that is created without saying how many.",
    "unclean.leader.election.enable": "Whether a replica that was not in sync is elected when no other is left.",
    "replica.lag.time.max.ms": "After how long without reaching the leader's log end a follower leaves the ISR.",
    "auto.create.topics.enable": "Whether a topic is created when a client asks for it.",
    "auto.leader.rebalance.enable": "Whether the first replica of a partition is made its leader again when it can be.",
    "leader.imbalance.check.interval.seconds": "How often leaders that are not the first replica are looked for.",
    "replica.fetch.wait.max.ms": "How long a follower's fetch waits for records; less than replica.lag.time.max.ms.",
    "replica.fetch.min.bytes": "What a follower's fetch waits for.",
    "replica.fetch.max.bytes": "What a follower fetches of one partition at most, but for one batch.",
    "replica.fetch.backoff.ms": "How long a follower waits after a fetch that failed.",
    "replica.socket.timeout.ms": "How long a follower waits for an answer.",
    "replica.fetch.response.max.bytes": "What a follower fetches at once at most, but for one batch.",
    "max.incremental.fetch.session.cache.slots": "Fetch sessions that are remembered (KIP-227).",
    "replica.selector.class": "Which replica a consumer is sent to: empty for the leader, or RackAwareReplicaSelector.",
    "fetch.max.bytes": "What a consumer fetches at once at most, but for one batch.",
    "message.max.bytes": "The largest batch that a producer may send.",
    "socket.request.max.bytes": "The largest request.",
    "max.connections": "Connections that may be open.",
    "broker.rack": "Where the broker stands; replicas are not spread by it.",
    "broker.session.timeout.ms": "Without a heartbeat for so long a broker is fenced.",
    "broker.heartbeat.interval.ms": "How often a broker sends a heartbeat to the controller.",
    "initial.broker.registration.timeout.ms": "A broker that is not registered after so long ends, and says why.",
    "controller.socket.timeout.ms": "How long a broker waits for the controller's answer.",
    "log.segment.bytes": "The largest file of a log; the next one begins then.",
    "log.index.interval.bytes": "How far entries of a log's index are apart.",
    "log.flush.interval.messages": "After how many records a log is flushed; by default never.",
    "log.flush.offset.checkpoint.interval.ms": "How often it is noted up to where logs are flushed.",
    "log.retention.ms": "How long the newest record of a segment keeps it; -1 for ever.",
    "log.retention.bytes": "How many bytes of a log are kept; -1 for all.",
    "log.retention.check.interval.ms": "How often segments are looked for that need not be kept.",
    "producer.id.expiration.ms": "After how long without a batch an idempotent producer is forgotten.",
    "replica.high.watermark.checkpoint.interval.ms": "How often high watermarks are noted on disk.",
    "metadata.log.max.record.bytes.between.snapshots": "How far metadata.log grows before a snapshot takes its place.",
    "offsets.topic.num.partitions": "Partitions of __consumer_offsets, when it is created.",
    "offsets.topic.replication.factor": "Replicas of a partition of __consumer_offsets, when it is created.",
    "group.initial.rebalance.delay.ms": "How long the first member of a group waits for others.",
    "insync.design": "Which protocol of Kafka's history the broker replicates by.",
    "insync.follower.reads": "Whether followers serve consumers (KIP-392).",
    "insync.waits.for.joiners": "Whether the high watermark waits for replicas that are about to join the ISR.",
    "insync.in.flight.max.bytes": "Bytes of requests without an answer, and of answers that nobody has taken.",
    "insync.trace.dir": "Where the process writes down which actions of the model it takes; empty for nowhere.",
    "insync.trace.snapshots": "Whether the trace has the states, too.",
    "insync.flush.record": "A file that notes what each flush made durable; empty for none.",
    "insync.dropped.records": "Whether records are written down before a truncation takes them.",
}
"""By the broker's names."""

WITHOUT_EFFECT: Final = "Taken, and without effect here."
"""What is said of a topic's settings that change nothing (`topic_configs`)."""
