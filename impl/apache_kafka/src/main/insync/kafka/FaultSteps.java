package insync.kafka;

import insync.conform.Refused;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * Faults and returns: a process ends, in order or not, and what it leaves on its disk; it starts
 * again.
 */
final class FaultSteps {
  private FaultSteps() {}

  static void in(Steps steps) {
    steps.add(
        "broker_crashes",
        List.of("r", "checkpoint"),
        List.of(Steps::everyBroker, Steps::everyOffset),
        (w, p) -> crashes(w, p.broker("r"), p.number("checkpoint")));
    steps.add(
        "broker_loses_power",
        List.of("r", "survivors", "checkpoint"),
        List.of(Steps::everyBroker, Steps::everyOffset, Steps::everyOffset),
        (w, p) -> losesPower(w, p.broker("r"), p.number("survivors"), p.number("checkpoint")));
    steps.add("broker_restarts", List.of("r"), (w, p) -> restarts(w, p.broker("r")));
    steps.add("disk_is_replaced", List.of("r"), (w, p) -> replaces(w, p.broker("r")));
    steps.add("directory_is_removed", List.of("r"), (w, p) -> removes(w, p.broker("r")));
    steps.add(
        "controller_learns_directory", List.of("r"), (w, p) -> learnsDirectory(w, p.broker("r")));
    steps.add("broker_asks_to_shut_down", List.of("r"), (w, p) -> asksToShutDown(w, p.broker("r")));
    steps.add("broker_shuts_down", List.of("r"), (w, p) -> shutsDown(w, p.broker("r")));
  }

  private static void crashes(World world, int r, int checkpoint) {
    if (world.history.crashes >= world.settings.crashes()) {
      throw Refused.because("beyond the model's bounds");
    }
    Machine at = running(world, r);
    if (checkpoint > at.watermark()) {
      throw Refused.because("it never had this watermark");
    }
    ends(world, at, Disk.of(at.process, checkpoint, null));
    world.history.crashes++;
  }

  private static void losesPower(World world, int r, int survivors, int checkpoint) {
    if (world.history.lossy >= world.settings.lossyCrashes()) {
      throw Refused.because("beyond the model's bounds");
    }
    Machine at = running(world, r);
    Disk disk = Disk.of(at.process, checkpoint, null);
    if (checkpoint > at.watermark() || survivors >= Broker.rows(disk.log()).size()) {
      throw Refused.because("it never had this watermark, or no record is lost");
    }
    if (checkpoint > survivors) {
      throw Refused.because(
          "the checkpoint is past what survives"); // the model's bound: see docs/kafka-classes.md
    }
    if (disk.bytes(survivors) < disk.flushed() && world.settings.flushAlways()) {
      throw Refused.because("Kafka had forced more to the disk");
    }
    ends(world, at, disk.cut(survivors));
    world.history.lossy++;
  }

  /** A machine whose process runs, to look at. */
  private static Machine running(World world, int r) {
    Machine found = world.look(r);
    if (found.process == null) {
      throw Refused.because("the broker does not run");
    }
    return found;
  }

  /** The process is no more, and so are all fetches from it and to it. */
  private static void ends(World world, Machine was, Disk disk) {
    Machine at = world.without(was);
    at.disk = disk;
    world.passesImage(at.id);
    for (int f = 0; f < world.size(); f++) {
      if (f != at.id && world.look(f).fetch.to == at.id) {
        world.beside(f).fetch = new Machine.Fetch();
      }
    }
  }

  private static void restarts(World world, int r) throws Exception {
    if (world.look(r).process != null) {
      throw Refused.because("it runs");
    }
    Machine at = world.at(r);
    HeldController controller = world.decides();
    Broker process = new Broker(r, at.clock, at.disk, at.directory());
    if (!controller.restarts(r, process.cleanEpoch(), at.directory())) {
      throw Refused.answer("DUPLICATE_BROKER_REGISTRATION");
    }
    process.epoch = controller.epoch(r);
    at.process = process;
    at.hasStopped = false;
    at.process.load(controller.log(), false);
    at.minimum = controller.minimum();
    at.disk = new Disk(new byte[0], 0, List.of(), at.disk.watermark(), null, null);
    at.fetch = new Machine.Fetch();
    at.alter = new Machine.Alter();
  }

  /**
   * An empty disk. Its directory id is the one before, as with a meta.properties that somebody has
   * put back, or with {@code new_directories} another one, as kafka-storage.sh makes it.
   */
  private static void replaces(World world, int r) {
    int replaced = world.history.disksReplaced;
    loses(world, r, replaced < world.settings.disksReplaced(), null);
    world.history.disksReplaced++;
  }

  /**
   * The directory with the log is taken out of log.dirs. The one that is left has the mark of a
   * clean stop, if there was one.
   */
  private static void removes(World world, int r) {
    int removed = world.history.directoriesRemoved;
    boolean budget = removed < world.settings.directoriesRemoved();
    loses(world, r, budget, world.look(r).disk.cleanEpoch());
    world.history.directoriesRemoved++;
  }

  private static void loses(World world, int r, boolean budget, Long cleanEpoch) {
    PartitionRegistration now = world.controller().partition();
    History told = world.history;
    if (!budget || told.disksReplaced + told.directoriesRemoved + 1 >= told.least) {
      throw Refused.because("beyond the model's bounds");
    }
    if (world.look(r).process != null || !world.controller().fenced(r)) {
      throw Refused.because("it runs, or the controller does not know that it does not");
    }
    if (Arrays.stream(now.replicas).noneMatch(replica -> replica == r)) {
      throw Refused.because("it is no replica");
    }
    Machine at = world.beside(r);
    at.disk = new Disk(new byte[0], 0, List.of(), 0, null, cleanEpoch);
    at.disksBefore += world.settings.newDirectories() ? 1 : 0;
  }

  /** The controller hears in which directory a replica is: handleAssignReplicasToDirs. */
  private static void learnsDirectory(World world, int r) {
    Machine look = world.look(r);
    if (look.process == null || look.process.assignment == null) {
      throw Refused.because("it has nothing to tell");
    }
    Machine at = world.alive(r);
    int version = world.controller().partition().partitionEpoch;
    Errors error = world.decides().assign(r, at.process.assignment);
    at.process.assignment = null;
    if (error != Errors.NONE || world.controller().partition().partitionEpoch == version) {
      throw Refused.answer("nothing changes: " + error.name());
    }
  }

  private static void asksToShutDown(World world, int r) {
    if (world.history.shutdowns >= world.settings.shutdowns() || world.look(r).process == null) {
      throw Refused.because("beyond the model's bounds, or it does not run");
    }
    if (!world.decides().askToShutDown(r)) {
      throw Refused.because("it is fenced, or has asked");
    }
    world.history.shutdowns++;
  }

  private static void shutsDown(World world, int r) throws Exception {
    boolean asked = world.look(r).process != null && world.controller().shuttingDown(r);
    if (!asked || world.wouldDecide().relievable(r)) {
      throw Refused.because("it has not asked, or is still needed");
    }
    Machine at = world.alive(r);
    Broker process = at.process;
    Disk before = Disk.of(process, at.watermark(), null);
    before.prepare(r, at.directory()); // the files that Kafka closes now
    UnifiedLog log = process.log();
    process.stop();
    long watermark = before.topic() == null ? before.watermark() : Disk.checkpoint(r);
    ends(world, at, Disk.of(process.parts, log, watermark, Disk.cleanEpoch(r)));
    world.beside(r).hasStopped = true;
    world.decides().stopped(r);
  }
}
