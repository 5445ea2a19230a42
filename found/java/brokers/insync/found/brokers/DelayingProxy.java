package insync.found.brokers;

import insync.found.NotTried;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;

/**
 * A TCP path to a node. It changes no byte and loses none; it can only let a connection wait. As
 * TCP does, it still delivers what was written to a connection that the client has closed since.
 */
final class DelayingProxy {
  /** An answer that went through. */
  record Answer(RequestHeader request, AbstractResponse body, boolean isHeard) {}

  private final ServerSocket server;
  private final int target;
  private final List<Hold> holds = new CopyOnWriteArrayList<>();
  private final List<Consumer<Answer>> listeners = new CopyOnWriteArrayList<>();

  /** A path to this port of this machine. */
  DelayingProxy(int target) throws IOException {
    this.target = target;
    server = new ServerSocket(0, 100, InetAddress.getLoopbackAddress());
    start(this::accept);
  }

  /** The port to connect to. */
  int port() {
    return server.getLocalPort();
  }

  /** From now on requests that match wait, and all that follows them in their connections. */
  Hold hold(Predicate<RequestHeader> which) {
    Hold hold = new Hold(which, Integer.MAX_VALUE);
    holds.add(hold);
    return hold;
  }

  /** The next request that matches waits, and all that follows it in its connection. */
  Hold holdOne(Predicate<RequestHeader> which) {
    Hold hold = new Hold(which, 1);
    holds.add(hold);
    return hold;
  }

  /** Is told the answers to AlterPartition, and to followers' fetches. */
  void listen(Consumer<Answer> listener) {
    listeners.add(listener);
  }

  private static void start(Runnable work) {
    Thread thread = new Thread(work, "proxy");
    thread.setDaemon(true);
    thread.start();
  }

  private void accept() {
    while (true) {
      try {
        connect(server.accept());
      } catch (IOException e) {
        continue; // the node is not up: the client sees its connection close
      }
    }
  }

  private void connect(Socket client) throws IOException {
    Socket node;
    try {
      client.setTcpNoDelay(true);
      node = new Socket(InetAddress.getLoopbackAddress(), target);
      node.setTcpNoDelay(true);
    } catch (IOException e) {
      client.close(); // else an admin client waits for the node until its call times out
      throw e;
    }
    Map<Integer, RequestHeader> open = new ConcurrentHashMap<>();
    start(() -> requests(client, node, open));
    start(() -> answers(client, node, open));
  }

  private void requests(Socket client, Socket node, Map<Integer, RequestHeader> open) {
    try {
      DataInputStream in = new DataInputStream(client.getInputStream());
      DataOutputStream out = new DataOutputStream(node.getOutputStream());
      while (true) {
        byte[] frame = read(in);
        RequestHeader header = RequestHeader.parse(ByteBuffer.wrap(frame));
        if (header.apiKey() == ApiKeys.ALTER_PARTITION || header.apiKey() == ApiKeys.FETCH) {
          open.put(header.correlationId(), header);
        }
        for (Hold hold : holds) {
          hold.pass(header);
        }
        write(out, frame);
      }
    } catch (IOException | InterruptedException e) {
      halfClose(node);
    }
  }

  /** The client's last byte has come: after what was written before it, the end of the stream. */
  private static void halfClose(Socket node) {
    try {
      node.shutdownOutput();
    } catch (IOException e) {
      return; // it is closed already
    }
  }

  private void answers(Socket client, Socket node, Map<Integer, RequestHeader> open) {
    try (client;
        node) {
      DataInputStream in = new DataInputStream(node.getInputStream());
      DataOutputStream out = new DataOutputStream(client.getOutputStream());
      while (true) {
        byte[] frame = read(in);
        RequestHeader request = open.remove(ByteBuffer.wrap(frame).getInt());
        boolean isHeard = true;
        try {
          write(out, frame);
        } catch (IOException e) {
          isHeard = false;
        }
        if (request != null && !listeners.isEmpty()) {
          tell(request, frame, isHeard);
        }
      }
    } catch (IOException e) {
      return;
    }
  }

  private void tell(RequestHeader request, byte[] frame, boolean isHeard) {
    AbstractResponse body = AbstractResponse.parseResponse(ByteBuffer.wrap(frame), request);
    listeners.forEach(listener -> listener.accept(new Answer(request, body, isHeard)));
  }

  private static byte[] read(DataInputStream in) throws IOException {
    byte[] frame = new byte[in.readInt()];
    in.readFully(frame);
    return frame;
  }

  private static void write(DataOutputStream out, byte[] frame) throws IOException {
    byte[] whole = ByteBuffer.allocate(4 + frame.length).putInt(frame.length).put(frame).array();
    out.write(whole);
    out.flush();
  }

  /** Requests that wait. */
  static final class Hold {
    private final Predicate<RequestHeader> which;
    private final int most;
    private final AtomicInteger count = new AtomicInteger();
    private final CountDownLatch first = new CountDownLatch(1);
    private final CountDownLatch over = new CountDownLatch(1);

    private Hold(Predicate<RequestHeader> which, int most) {
      this.which = which;
      this.most = most;
    }

    private void pass(RequestHeader header) throws InterruptedException {
      if (over.getCount() > 0 && which.test(header) && count.incrementAndGet() <= most) {
        first.countDown();
        over.await();
      }
    }

    /** Waits until a request waits. */
    void awaitCaught(String what, int seconds) throws Exception {
      if (!first.await(seconds, TimeUnit.SECONDS)) {
        throw new NotTried("no request to hold was seen: " + what);
      }
    }

    /** How many requests have waited. */
    int count() {
      return count.get();
    }

    /** The path heals. */
    void release() {
      over.countDown();
    }
  }
}
