package insync.trace;

import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;

/**
 * Writes those of Kafka's classes of which {@link Trace} tells into a folder that is to come before
 * Kafka's jars. What they do is unchanged.
 */
public final class Weave {
  private static final Map<String, List<String>> METHODS =
      Map.of(
          "kafka.cluster.Partition",
          List.of(
              "createLog",
              "makeLeader",
              "leaderReplicaIdOpt_$eq",
              "makeFollower",
              "appendRecordsToLeader",
              "fetchRecords",
              "prepareIsrShrink",
              "prepareIsrExpand",
              "handleAlterPartitionUpdate",
              "partitionEpoch_$eq",
              "handleAlterPartitionError"),
          "org.apache.kafka.server.replica.Replica",
          List.of("updateFetchStateOrThrow"),
          "org.apache.kafka.storage.internals.log.LocalLog",
          List.of("append", "markFlushed"),
          "org.apache.kafka.storage.internals.log.UnifiedLog",
          List.of("updateHighWatermarkMetadata"),
          "kafka.server.ReplicaFetcherThread",
          List.of("processPartitionData", "truncate", "truncateFullyAndStartAt"),
          "kafka.server.BrokerBlockingSender",
          List.of("sendRequest"),
          "kafka.server.KafkaApis",
          List.of("handle"),
          "kafka.network.RequestChannel",
          List.of("sendResponse"));

  private Weave() {}

  /** The argument is the folder. */
  public static void main(String[] arguments) throws IOException {
    ClassFileLocator locator = ClassFileLocator.ForClassLoader.ofSystemLoader();
    TypePool pool = TypePool.Default.of(locator);
    for (var told : METHODS.entrySet()) {
      var type = pool.describe(told.getKey()).resolve();
      for (String method : told.getValue()) {
        if (type.getDeclaredMethods().filter(ElementMatchers.named(method)).isEmpty()) {
          System.err.println(told.getKey() + " has no method " + method);
          System.exit(1);
        }
      }
      new ByteBuddy()
          .redefine(type, locator)
          .visit(
              Advice.to(Around.class)
                  .on(ElementMatchers.namedOneOf(told.getValue().toArray(String[]::new))))
          .make()
          .saveIn(new File(arguments[0]));
    }
  }

  /** Around a method. */
  static final class Around {
    private Around() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static long enter(
        @Advice.Origin("#m") String method,
        @Advice.This Object self,
        @Advice.AllArguments Object[] given) {
      return Trace.begins(method, self, given);
    }

    @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(
        @Advice.Origin("#m") String method,
        @Advice.Enter long since,
        @Advice.This Object self,
        @Advice.AllArguments Object[] given,
        @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object result,
        @Advice.Thrown Throwable thrown) {
      Trace.ends(method, since, self, given, result, thrown);
    }
  }
}
