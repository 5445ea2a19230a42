package org.apache.kafka.raft;

import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.protocol.ApiMessage;

/** A request that a client has sent, and where its answer goes. */
public record HeldRequest(
    RaftRequest.Outbound outbound, CompletableFuture<RaftResponse.Inbound> completion) {
  /** What it asks. */
  public ApiMessage data() {
    return outbound.data();
  }

  /** Its number among the requests of its sender's process. */
  public int number() {
    return outbound.correlationId();
  }

  void complete(ApiMessage answer) {
    completion.complete(new RaftResponse.Inbound(number(), answer, outbound.destination()));
  }
}
