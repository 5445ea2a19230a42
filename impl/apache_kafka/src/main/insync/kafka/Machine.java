package insync.kafka;

import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * One broker's machine: its process if it runs, its disk if it does not, and the messages that it
 * has on their way.
 */
final class Machine {
  /** The fetch of this follower. */
  static final class Fetch {
    String kind = "none";
    int to = -1;
    int epoch;
    int offset;
    int last;
    int watermark;
    Integer record;
    Broker.Ask ask;
    FetchResponse answer;

    Fetch() {}

    Fetch(Fetch of) {
      kind = of.kind;
      to = of.to;
      epoch = of.epoch;
      offset = of.offset;
      last = of.last;
      watermark = of.watermark;
      record = of.record;
      ask = of.ask;
      answer = of.answer;
    }
  }

  /** The AlterPartition of this leader. */
  static final class Alter {
    String kind = "none";
    AlterPartitionRequestData request;
    AlterPartitionResponseData answer;
    RequestCompletionHandler whenAnswered;

    /** How many records of metadata there were when the controller had decided it. */
    int decidedBy;

    /** The broker epoch of who would join, as the request says it; 0 for nobody. */
    long joiner;

    Alter() {}

    Alter(Alter of) {
      kind = of.kind;
      request = of.request;
      answer = of.answer;
      whenAnswered = of.whenAnswered;
      joiner = of.joiner;
      decidedBy = of.decidedBy;
    }

    /** The same request, whose answer nobody waits for. */
    Alter withoutHandler() {
      Alter made = new Alter(this);
      made.answer = null;
      made.whenAnswered = null;
      return made;
    }

    AlterPartitionRequestData.PartitionData partition() {
      return request.topics().get(0).partitions().get(0);
    }
  }

  final int id;
  final Clock clock;
  Broker process;
  Disk disk = Disk.NEW;
  Fetch fetch = new Fetch();
  Alter alter = new Alter();

  /** The epoch in which it began to lead without a break; 0 if it does not lead. */
  int leadingSince;

  /** Whose fetches it has answered in this epoch, as a bit each. */
  int answeredFetchers;

  /** The epoch in which its replica was deleted; 0 if none was. */
  int deletedIn;

  /** Whether its process has stopped in order, and none has started since. */
  boolean hasStopped;

  /** How many disks it has had before this one, each with a directory id of its own. */
  int disksBefore;

  /** min.insync.replicas of its log when it last had one, or of its metadata when it started. */
  int minimum;

  /** An answer that the model has given up, and that will still come. */
  Alter late;

  Machine(int id) {
    this(id, new Clock());
  }

  Machine(int id, Clock clock) {
    this.id = id;
    this.clock = clock;
  }

  /** The same process, clock and disk, and messages of its own. */
  Machine(Machine of) {
    id = of.id;
    clock = of.clock;
    process = of.process;
    disk = of.disk;
    fetch = new Fetch(of.fetch);
    alter = new Alter(of.alter);
    leadingSince = of.leadingSince;
    answeredFetchers = of.answeredFetchers;
    deletedIn = of.deletedIn;
    hasStopped = of.hasStopped;
    disksBefore = of.disksBefore;
    minimum = of.minimum;
    late = of.late;
  }

  /** The directory id in the meta.properties of its disk. */
  Uuid directory() {
    return HeldController.directory(id, disksBefore);
  }

  boolean leads() {
    return process != null && process.leads();
  }

  /** min.insync.replicas as its log has it, or had it. */
  int minimum() {
    UnifiedLog log = process == null ? null : process.log();
    return log == null ? minimum : log.config().minInSyncReplicas;
  }

  long watermark() {
    boolean opened =
        process != null && process.partition() != null && process.partition().log().isDefined();
    return opened ? process.watermark() : disk.watermark();
  }
}
