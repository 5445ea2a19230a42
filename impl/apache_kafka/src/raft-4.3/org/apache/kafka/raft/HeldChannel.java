package org.apache.kafka.raft;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.network.ListenerName;

/** A network that delivers nothing by itself, as it was until Kafka 4.3. */
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
  public void send(RaftRequest.Outbound request) {
    requests.put(request.destination().id(), new HeldRequest(request, request.completion));
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
    client.handle(request);
    return request.completion;
  }
}
