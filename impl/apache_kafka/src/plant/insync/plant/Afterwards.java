package insync.plant;

import kafka.cluster.Partition;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.OffsetForLeaderTopicResult;
import org.apache.kafka.common.protocol.Errors;
import scala.Tuple2;

/** Mistakes that are made after a method has done its work: each is code that is put at its end. */
final class Afterwards {
  private Afterwards() {}

  /**
   * Partition.checkEnoughReplicasReachOffset: a producer whose leader has stepped down hears that its
   * record is safe.
   */
  static final class Acknowledges {
    @Advice.OnMethodExit
    static void exit(@Advice.Return(readOnly = false) Tuple2<Object, Errors> answer) {
      if (answer._2() == Errors.NOT_LEADER_OR_FOLLOWER) {
        answer = new Tuple2<>(true, Errors.NONE);
      }
    }
  }

  /** ReplicaManager.lastOffsetForLeaderEpoch: every epoch ends one record later than it does. */
  static final class EndsLater {
    @Advice.OnMethodExit
    static void exit(@Advice.Return scala.collection.Seq<OffsetForLeaderTopicResult> answer) {
      scala.collection.Iterator<OffsetForLeaderTopicResult> topics = answer.iterator();
      while (topics.hasNext()) {
        for (EpochEndOffset end : topics.next().partitions()) {
          end.setEndOffset(end.endOffset() + 1);
        }
      }
    }
  }

  /**
   * Partition.checkCurrentLeaderEpoch: a fetch of another epoch is refused, and the watermark moves
   * to the end of the log.
   */
  static final class Commits {
    @Advice.OnMethodExit
    static void exit(@Advice.This Partition partition, @Advice.Return Errors error)
        throws Exception {
      if (error != Errors.NONE && partition.log().isDefined()) {
        partition.log().get().updateHighWatermark(partition.log().get().logEndOffset());
      }
    }
  }
}
