package insync.kafka;

import insync.objects.Fields;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.LeastLoadedNode;
import org.apache.kafka.clients.ManualMetadataUpdater;
import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AlterPartitionRequest;
import org.apache.kafka.server.ControllerInformation;
import org.apache.kafka.server.NodeToControllerQueueItem;
import org.apache.kafka.server.NodeToControllerRequestThread;
import org.apache.kafka.server.common.ControllerRequestCompletionHandler;
import org.apache.kafka.server.common.NodeToControllerChannelManager;
import scala.Option;

/**
 * The way to the controller: NodeToControllerRequestThread with its queue, never started, over a
 * connection that keeps what is sent.
 */
final class ControllerChannel implements NodeToControllerChannelManager {
  private static final Node CONTROLLER = new Node(3000, "localhost", 9093);
  private static final int REQUEST_TIMEOUT_MS = 30_000; // controller.socket.timeout.ms

  private final Broker broker;
  private final NodeToControllerRequestThread thread;

  ControllerChannel(Broker broker, Parts parts) {
    this.broker = broker;
    Class<?> provider =
        NodeToControllerRequestThread.class.getConstructors()[0].getParameterTypes()[2];
    ControllerInformation found =
        Wiring.make(ControllerInformation.class, Optional.of(CONTROLLER), Option.apply(CONTROLLER));
    thread =
        Wiring.make(
            NodeToControllerRequestThread.class,
            new Connection(broker),
            new ManualMetadataUpdater(),
            Wiring.answering(provider, found),
            parts.config,
            REQUEST_TIMEOUT_MS,
            broker.clock,
            "to-controller",
            Long.MAX_VALUE);
    Fields.set(thread, "started", true);
  }

  @Override
  public void sendRequest(
      AbstractRequest.Builder<? extends AbstractRequest> request,
      ControllerRequestCompletionHandler handler) {
    thread.enqueue(new NodeToControllerQueueItem(broker.clock.now, request, handler));
    work();
  }

  /** NodeToControllerRequestThread.doWork, until nothing is left in its queue. */
  void work() {
    while (thread.queueSize() > 0) {
      thread.doWork();
    }
  }

  @Override
  public void start() {}

  @Override
  public void shutdown() {}

  @Override
  public Optional<NodeApiVersions> controllerApiVersions() {
    return Optional.empty();
  }

  @Override
  public long getTimeoutMs() {
    return Long.MAX_VALUE;
  }

  /** A connection on which the broker's request is, with whom to tell the answer. */
  private static final class Connection implements KafkaClient {
    private final Broker broker;
    private int requests;

    Connection(Broker broker) {
      this.broker = broker;
    }

    @Override
    public void send(ClientRequest request, long now) {
      broker.alterRequest = ((AlterPartitionRequest) request.requestBuilder().build()).data();
      broker.whenAnswered = request.callback();
    }

    @Override
    public ClientRequest newClientRequest(
        String node,
        AbstractRequest.Builder<?> request,
        long created,
        boolean expectResponse,
        int timeout,
        RequestCompletionHandler handler) {
      return new ClientRequest(
          node, request, requests++, "", created, expectResponse, timeout, handler);
    }

    @Override
    public ClientRequest newClientRequest(
        String node, AbstractRequest.Builder<?> request, long created, boolean expectResponse) {
      return newClientRequest(node, request, created, expectResponse, REQUEST_TIMEOUT_MS, null);
    }

    @Override
    public boolean isReady(Node node, long now) {
      return true;
    }

    @Override
    public boolean ready(Node node, long now) {
      return true;
    }

    @Override
    public long connectionDelay(Node node, long now) {
      return 0;
    }

    @Override
    public long pollDelayMs(Node node, long now) {
      return 0;
    }

    @Override
    public boolean connectionFailed(Node node) {
      return false;
    }

    @Override
    public AuthenticationException authenticationException(Node node) {
      return null;
    }

    /** An answer is handed to its handler when the adapter delivers it. */
    @Override
    public List<ClientResponse> poll(long timeout, long now) {
      return List.of();
    }

    @Override
    public LeastLoadedNode leastLoadedNode(long now) {
      throw new IllegalStateException("there is one controller");
    }

    @Override
    public int inFlightRequestCount() {
      return 0;
    }

    @Override
    public boolean hasInFlightRequests() {
      return false;
    }

    @Override
    public int inFlightRequestCount(String node) {
      return 0;
    }

    @Override
    public boolean hasInFlightRequests(String node) {
      return false;
    }

    @Override
    public boolean hasReadyNodes(long now) {
      return true;
    }

    @Override
    public boolean active() {
      return true;
    }

    @Override
    public void disconnect(String node) {}

    @Override
    public void close(String node) {}

    @Override
    public void wakeup() {}

    @Override
    public void initiateClose() {}

    @Override
    public void close() {}
  }
}
