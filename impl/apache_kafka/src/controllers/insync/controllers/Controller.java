package insync.controllers;

import insync.raft.Disk;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.controller.HeldQuorumController;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.HeldClient;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** A controller: its disk, its client of the quorum, and what is on top of that. */
final class Controller {
  /** The AlterPartition of a leader that it answers when its log is committed up to this end. */
  record Pending(CompletableFuture<AlterPartitionResponseData> answer, int end) {}

  final int id;
  final Disk disk;
  final HeldClient<ApiMessageAndVersion> client;
  final HeldQuorumController process;

  /** By the broker that asks. */
  final Map<Integer, Pending> pending = new HashMap<>();

  /** Its process starts on this disk. */
  Controller(int id, int controllers, Disk disk, int minInsync) {
    this.id = id;
    this.disk = disk;
    client = new HeldClient<>(id, controllers, disk, MetadataRecordSerde.INSTANCE);
    process = new HeldQuorumController(id, controllers, client.client(), minInsync);
    client.listens(process::runs);
    client.rest();
  }
}
