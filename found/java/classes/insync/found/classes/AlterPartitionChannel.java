package insync.found.classes;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.LeastLoadedNode;
import org.apache.kafka.clients.ManualMetadataUpdater;
import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AlterPartitionRequest;
import org.apache.kafka.common.requests.AlterPartitionResponse;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.controller.InProcessController;
import org.apache.kafka.server.ControllerInformation;
import org.apache.kafka.server.NodeToControllerQueueItem;
import org.apache.kafka.server.NodeToControllerRequestThread;
import org.apache.kafka.server.common.ControllerRequestCompletionHandler;
import org.apache.kafka.server.common.NodeToControllerChannelManager;
import org.apache.kafka.server.util.KafkaScheduler;

/**
 * How a broker reaches the controller: Kafka's DefaultAlterPartitionManager and
 * NodeToControllerRequestThread, over a network in which every copy of a request waits until it is
 * delivered. The thread is not started; {@link #run} is one turn of its loop.
 */
public final class AlterPartitionChannel implements NodeToControllerChannelManager {
  private static final int CONTROLLER_SOCKET_TIMEOUT_MS = 30_000;

  private final Clock clock;
  private final Network network = new Network();
  private final NodeToControllerRequestThread thread;
  private final Object manager;

  /** The channel of one broker. */
  public AlterPartitionChannel(int broker, InProcessController controller, Clock clock) {
    this.clock = clock;
    Node node = new Node(0, "localhost", 9090);
    Supplier<ControllerInformation> where =
        () ->
            new ControllerInformation(
                Optional.of(node), new ListenerName("CONTROLLER"), SecurityProtocol.PLAINTEXT, "");
    thread =
        Moved.build(
            NodeToControllerRequestThread.class,
            network,
            new ManualMetadataUpdater(),
            where,
            CONTROLLER_SOCKET_TIMEOUT_MS,
            Configurations.broker(broker, Path.of("none")),
            clock,
            "to-controller",
            Long.MAX_VALUE);
    thread.setStarted(true);
    manager = manager(broker, controller);
  }

  private Object manager(int broker, InProcessController controller) {
    KafkaScheduler scheduler = new KafkaScheduler(1);
    scheduler.startup();
    Supplier<Long> epoch = () -> controller.brokerEpoch(broker);
    scala.Function0<Object> scalaEpoch = () -> controller.brokerEpoch(broker);
    Class<?> type =
        Moved.type(
            "org.apache.kafka.server.partition.DefaultAlterPartitionManager",
            "kafka.server.DefaultAlterPartitionManager");
    return Moved.build(type, this, scheduler, clock, broker, epoch, scalaEpoch);
  }

  /** Kafka's DefaultAlterPartitionManager. */
  public Object manager() {
    return manager;
  }

  /** Two turns of the request thread: it finds the controller, then sends what is queued. */
  public void run() {
    thread.doWork();
    thread.doWork();
  }

  /** All copies that were sent so far. */
  public List<Copy> copies() {
    return List.copyOf(network.sent);
  }

  /**
   * controller.socket.timeout.ms goes by without an answer: NetworkClient closes the connection.
   */
  public void timeOut() {
    clock.sleep(CONTROLLER_SOCKET_TIMEOUT_MS);
    Copy last = network.sent.get(network.sent.size() - 1);
    last.connected = false;
    last.complete(null, clock.milliseconds());
  }

  /** A copy reaches the controller, and the answer the broker, if its connection is still open. */
  public AlterPartitionResponseData deliver(Copy copy, InProcessController controller) {
    AlterPartitionResponseData answer = controller.alterPartition(copy.data());
    if (copy.connected) {
      copy.complete(new AlterPartitionResponse(answer), clock.milliseconds());
    }
    return answer;
  }

  @Override
  public void sendRequest(
      AbstractRequest.Builder<? extends AbstractRequest> request,
      ControllerRequestCompletionHandler callback) {
    thread.enqueue(new NodeToControllerQueueItem(clock.milliseconds(), request, callback));
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

  /** One copy of a request, somewhere between the broker and the controller. */
  public static final class Copy {
    private final ClientRequest request;
    private boolean connected = true;

    private Copy(ClientRequest request) {
      this.request = request;
    }

    /** What it says. */
    public AlterPartitionRequestData data() {
      return ((AlterPartitionRequest) request.requestBuilder().build()).data();
    }

    private void complete(AlterPartitionResponse answer, long now) {
      short version = request.requestBuilder().latestAllowedVersion();
      new ClientResponse(
              request.makeHeader(version),
              request.callback(),
              request.destination(),
              request.createdTimeMs(),
              now,
              answer == null,
              null,
              null,
              answer)
          .onComplete();
    }
  }

  /** NetworkClient's place: always connected, and it keeps what is sent. */
  private static final class Network implements KafkaClient {
    private final List<Copy> sent = new ArrayList<>();
    private int correlation = 0;

    @Override
    public void send(ClientRequest request, long now) {
      sent.add(new Copy(request));
    }

    @Override
    public ClientRequest newClientRequest(
        String node,
        AbstractRequest.Builder<?> builder,
        long created,
        boolean expectResponse,
        int timeout,
        RequestCompletionHandler callback) {
      return new ClientRequest(
          node, builder, correlation++, "1", created, expectResponse, timeout, callback);
    }

    @Override
    public ClientRequest newClientRequest(
        String node, AbstractRequest.Builder<?> builder, long created, boolean expectResponse) {
      return newClientRequest(node, builder, created, expectResponse, 0, null);
    }

    @Override
    public List<ClientResponse> poll(long timeout, long now) {
      return List.of();
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

    @Override
    public void disconnect(String node) {}

    @Override
    public void close(String node) {}

    @Override
    public void close() {}

    @Override
    public LeastLoadedNode leastLoadedNode(long now) {
      throw new UnsupportedOperationException();
    }

    @Override
    public int inFlightRequestCount() {
      return 0;
    }

    @Override
    public int inFlightRequestCount(String node) {
      return 0;
    }

    @Override
    public boolean hasInFlightRequests() {
      return false;
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
    public void wakeup() {}

    @Override
    public void initiateClose() {}

    @Override
    public boolean active() {
      return true;
    }
  }
}
