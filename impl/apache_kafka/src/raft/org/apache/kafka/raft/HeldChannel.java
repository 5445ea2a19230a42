package org.apache.kafka.raft;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.kafka.common.network.ListenerName;

/** A network that delivers nothing by itself. */
final class HeldChannel implements NetworkChannel {
  static final ListenerName LISTENER = new ListenerName("CONTROLLER");

  /** The last request to each voter. */
  final Map<Integer, HeldRequest> requests = new HashMap<>();

  private int numbers;

  @Override
  public int newCorrelationId() {
    return ++numbers;
  }

  @Override
  public CompletionStage<RaftResponse.Inbound> send(RaftRequest.Outbound request) {
    CompletableFuture<RaftResponse.Inbound> completion = new CompletableFuture<>();
    requests.put(request.destination().id(), new HeldRequest(request, completion));
    return completion;
  }

  @Override
  public ListenerName listenerName() {
    return LISTENER;
  }

  @Override
  public void close() {}

  /** A request arrives at a client, and its answer leaves when it leaves. */
  static CompletableFuture<RaftResponse.Outbound> handle(
      KafkaRaftClient<?> client, RaftRequest.Inbound request) {
    return client.handle(request).toCompletableFuture();
  }
}
