package org.apache.kafka.raft;

import insync.raft.StillTime;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.feature.SupportedVersionRange;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.Writable;
import org.apache.kafka.server.common.serialization.RecordSerde;

/** What a KafkaRaftClient needs besides its disk, its network and its clock. */
final class HeldParts {
  /** The id of the cluster. */
  static final String CLUSTER = "cluster";

  /** The versions of kraft.version that a node knows. */
  static final SupportedVersionRange VERSIONS =
      new SupportedVersionRange((short) 0, (short) 1);

  private static final QuorumConfig CONFIG = config();

  /** Kafka's batches begin with 8 MiB of memory each; a few records need less. */
  private static final class SmallMemory implements MemoryPool {
    private static final int BYTES = 4096;

    @Override
    public ByteBuffer tryAllocate(int bytes) {
      return ByteBuffer.allocate(Math.min(bytes, BYTES));
    }

    @Override
    public void release(ByteBuffer buffer) {}

    @Override
    public long size() {
      return Long.MAX_VALUE;
    }

    @Override
    public long availableMemory() {
      return Long.MAX_VALUE;
    }

    @Override
    public boolean isOutOfMemory() {
      return false;
    }
  }

  /** Whatever waits waits on, until it is told that it has waited too long. */
  static final class HeldExpiration implements ExpirationService {
    /** What began to wait last. */
    CompletableFuture<?> last;

    @Override
    public <T> CompletableFuture<T> failAfter(long timeoutMs) {
      CompletableFuture<T> future = new CompletableFuture<>();
      last = future;
      return future;
    }
  }

  /** Always the least number, so that two processes that did the same are the same. */
  private static final class LeastNumber extends Random {
    private static final long serialVersionUID = 1;

    @Override
    public int nextInt(int bound) {
      return 0;
    }
  }

  /** Records that are words. */
  static final RecordSerde<String> WORDS =
      new RecordSerde<>() {
        @Override
        public int recordSize(String data, ObjectSerializationCache cache) {
          return data.length();
        }

        @Override
        public void write(String data, ObjectSerializationCache cache, Writable out) {
          out.writeByteArray(data.getBytes(StandardCharsets.US_ASCII));
        }

        @Override
        public String read(Readable in, int size) {
          return new String(in.readArray(size), StandardCharsets.US_ASCII);
        }
      };

  private static QuorumConfig config() {
    Map<String, Object> values = new HashMap<>();
    values.put("controller.quorum.append.linger.ms", 0);
    return new QuorumConfig(new AbstractConfig(QuorumConfig.CONFIG_DEF, values, false));
  }

  static InetSocketAddress address(int id) {
    return InetSocketAddress.createUnresolved("voter", 9000 + id);
  }

  static Endpoints endpoints(int id) {
    return Endpoints.fromInetSocketAddresses(Map.of(HeldChannel.LISTENER, address(id)));
  }

  private final StillTime time = new StillTime();
  private final HeldExpiration expiration = new HeldExpiration();

  /** One clock. */
  StillTime time() {
    return time;
  }

  MemoryPool memory() {
    return new SmallMemory();
  }

  HeldExpiration expiration() {
    return expiration;
  }

  Random random() {
    return new LeastNumber();
  }

  QuorumConfig quorumConfig() {
    return CONFIG;
  }

  /** A fetch is answered at once, or waits for news. */
  int fetchMaxWaitMs() {
    return HeldClient.FETCHES_WAIT ? 500 : 0;
  }
}
