package insync.kafka;

import insync.conform.Refused;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * What brokers do with metadata: they apply the newest, an image that is not the newest any more, or
 * a snapshot.
 */
final class MetadataSteps {
  /** What a broker may do with the newest metadata, and how the same with an old image is called. */
  private static final Map<String, String> OLD =
      Map.of(
          "becomes_follower", "becomes_follower_of_old_image",
          "becomes_leader", "becomes_replaced_leader",
          "leader_learns_isr", "leader_learns_old_isr",
          "broker_learns_minimum", "broker_learns_old_minimum",
          "replica_is_deleted", "replica_is_deleted_by_old_image");

  /** Metadata up to some record, and what they say of the partition. */
  private record News(int end, PartitionRegistration partition, boolean isOld) {
    static News newest(World world) {
      HeldController controller = world.controller();
      return new News(controller.log().size(), controller.partition(), false);
    }

    /** The image that this broker has yet to apply, where there is a newer version. */
    static News old(World world, int broker) {
      Image image = world.image;
      int newest = world.controller().partition().partitionEpoch;
      if (image == null
          || !image.readers().contains(broker)
          || image.partition().partitionEpoch >= newest) {
        throw Refused.because("it has no old image to apply");
      }
      return new News(image.end(), image.partition(), true);
    }

    boolean hasReplica(int broker) {
      return Arrays.stream(partition.replicas).anyMatch(id -> id == broker);
    }

    String name(String action) {
      return isOld ? OLD.get(action) : action;
    }
  }

  private MetadataSteps() {}

  static void in(Steps steps) {
    Map<String, List<String>> learned = new LinkedHashMap<>();
    learned.put("becomes_follower", List.of("r")); // the first is what a refusal with an effect is
    learned.put("becomes_leader", List.of("r"));
    learned.put("leader_learns_isr", List.of("leader"));
    learned.put("leader_learns_brokers", List.of("leader"));
    learned.put("broker_learns_minimum", List.of("r"));
    learned.put("replica_is_deleted", List.of("r"));
    steps.any(learned, (w, p) -> learns(w, p.broker(), News.newest(w)));
    Map<String, List<String>> late = new LinkedHashMap<>();
    learned.forEach((action, names) -> late.put(OLD.getOrDefault(action, ""), names));
    late.remove("");
    steps.any(late, (w, p) -> learns(w, p.broker(), News.old(w, p.broker())));
    steps.listedIf(settings -> settings.oldMetadata() > 0);
    steps.add("image_is_delayed", List.of(), (w, p) -> delaysImage(w));
    steps.listedIf(settings -> settings.oldMetadata() > 0);
    steps.add( // without a budget it is in designs that are stories only
        "leader_hears_known_version",
        List.of("leader"),
        (w, p) -> hearsKnown(w, p.broker("leader"), News.newest(w)));
    steps.listedIf(settings -> settings.lateNews() > 0);
    steps.add(
        "leader_hears_known_version_of_old_image",
        List.of("leader"),
        (w, p) -> hearsKnown(w, p.broker("leader"), News.old(w, p.broker("leader"))));
    steps.listedIf(settings -> settings.lateNews() > 0 && settings.oldMetadata() > 0);
    steps.add(
        "leader_loads_snapshot", List.of("leader"), (w, p) -> loadsSnapshot(w, p.broker("leader")));
    steps.listedIf(settings -> settings.snapshotsLoaded() > 0);
  }

  /**
   * How many records a broker is to read. It reads all that there are; a leader that knows the
   * version of the partition reads no further than a configuration.
   */
  private static int reads(World world, Machine machine, News news) {
    boolean known =
        world.settings.operations()
            && !world.settings.ownView()
            && machine.leads()
            && machine.process.leaderEpoch() == news.partition.leaderEpoch
            && machine.process.partition().getPartitionEpoch() == news.partition.partitionEpoch;
    return known ? world.controller().configuredBy(news.end) : news.end;
  }

  private static Steps.Became learns(World world, int r, News news) throws Exception {
    Machine look = world.look(r);
    if (look.process == null) {
      throw Refused.because("the broker does not run");
    }
    int records = reads(world, look, news);
    if (look.process.metadataPosition() >= records) {
      throw Refused.because("there is no news");
    }
    String is = news.hasReplica(r) ? applies(world, r, news, records) : "replica_is_deleted";
    if (!news.hasReplica(r)) {
      deletes(world, r, news, records);
    }
    if (news.isOld && !OLD.containsKey(is)) {
      throw Refused.because("of an old image the model has nobody learn who is away alone");
    }
    world.passesImage(r);
    return new Steps.Became(news.name(is), "it is " + news.name(is));
  }

  /** A broker with a replica applies metadata: what that is in the model. */
  private static String applies(World world, int r, News news, int records) throws Exception {
    Machine look = world.look(r);
    int epoch = look.process.leaderEpoch();
    boolean led = look.leads();
    List<String> away = away(world, look);
    int leader = look.process.leader();
    int version =
        look.process.partition() == null ? -1 : look.process.partition().getPartitionEpoch();
    int minimum = look.minimum();
    Machine at = world.alive(r);
    Broker broker = at.process;
    if (broker.partition() == null) {
      at.disk.reopen(r, at.directory(), broker.log() != null);
    }
    broker.learn(world.controller(), records);
    boolean moved = broker.leaderEpoch() != epoch || broker.leader() != leader;
    boolean newer = moved || broker.partition().getPartitionEpoch() != version;
    boolean brokers = world.settings.ownView() && !away(world, at).equals(away);
    String is =
        moved ? (broker.leads() ? "becomes_leader" : "becomes_follower") : "leader_learns_isr";
    is = newer ? is : "leader_learns_brokers";
    boolean configured = world.settings.operations() && at.minimum() != minimum;
    if (configured && !moved && !(newer && broker.leads())) {
      if (broker.leads() && version != news.partition.partitionEpoch) {
        throw Refused.because("its version is newer than the image: the model leaves that out");
      }
      return "broker_learns_minimum";
    }
    if (!(newer || brokers) || !moved && !broker.leads()) {
      String why = newer || brokers ? "it is " + is : "no news of the partition";
      throw broker.leads() // a leader that hears what it knows forgets its proposal: hearsKnown
          ? Refused.because(why)
          : Refused.answer(why);
    }
    if (moved) {
      at.leadingSince = !broker.leads() ? 0 : led ? at.leadingSince : broker.leaderEpoch();
      at.answeredFetchers = 0;
      at.deletedIn = 0;
    }
    if (at.alter.answer != null && newer) {
      Messages.drop(at);
    }
    Messages.askController(at);
    if (moved && !Messages.lives(world, r)) {
      Messages.send(at);
    }
    return is;
  }

  /** It learns that it has no replica any more: ReplicaManager.stopPartitions. */
  private static void deletes(World world, int r, News news, int records) throws Exception {
    Machine look = world.look(r);
    if (look.process.leader() < 0 && look.process.rows().isEmpty()) {
      throw Refused.because("it follows nobody and has nothing");
    }
    int minimum = look.minimum();
    Machine at = world.alive(r);
    Disk disk = Disk.of(at.process, at.watermark(), null);
    if (at.process.partition() == null) {
      startsWithStray(world, at, disk, records);
    } else {
      disk.prepare(r, at.directory()); // the files that Kafka renames now
    }
    at.process.learn(world.controller(), records);
    if (at.process.partition() != null || at.process.log() != null) {
      throw Refused.answer("it keeps its replica");
    }
    at.disk = Disk.NEW;
    at.minimum = minimum;
    at.leadingSince = 0;
    at.answeredFetchers = 0;
    at.deletedIn = news.partition.leaderEpoch;
    if (at.alter.answer != null) {
      Messages.drop(at);
    }
    if (!Messages.lives(world, r)) {
      Messages.send(at);
    }
  }

  /**
   * The first metadata that a process reads have no replica on its broker: LogManager.startup takes
   * its log for a stray. Kafka loads logs in the step in which it first publishes metadata.
   */
  private static void startsWithStray(World world, Machine at, Disk disk, int records)
      throws Exception {
    at.process = new Broker(at.id, at.process.epoch, at.clock, disk, at.directory());
    at.process.load(world.controller().log().subList(0, records), true);
  }

  /** Its metadata bring the partition's version that the leader knows from an answer. */
  private static void hearsKnown(World world, int leader, News news) throws Exception {
    Machine look = world.look(leader);
    if (!look.leads()) {
      throw Refused.because("no leader");
    }
    int version = look.process.partition().getPartitionEpoch();
    if (version != news.partition.partitionEpoch) {
      throw Refused.because("the metadata have another version");
    }
    if (look.process.metadataPosition() >= news.end) {
      throw Refused.because("there is no news");
    }
    if (world.settings.operations()) {
      if (!look.process.ahead() || world.history.lateNews >= world.settings.lateNews()) {
        throw Refused.because("it has read this version, or beyond the model's bounds");
      }
      world.history.lateNews++;
    }
    Machine at = world.alive(leader);
    at.process.learn(world.controller(), news.end);
    world.passesImage(leader);
    if (at.alter.answer != null) {
      Messages.drop(at);
    }
  }

  /**
   * A leader that waits for an answer loads a snapshot with the version that it knows. What it has
   * read is in the snapshot, and nothing that came after that version and the leader has not read.
   */
  private static void loadsSnapshot(World world, int leader) {
    Machine look = world.look(leader);
    HeldController controller = world.controller();
    if (world.history.snapshotsLoaded >= world.settings.snapshotsLoaded()) {
      throw Refused.because("beyond the model's bounds");
    }
    if (!look.leads() || look.process.pending().isEmpty()) {
      throw Refused.because("no leader that waits for an answer");
    }
    if (look.process.partition().getPartitionEpoch() != controller.partition().partitionEpoch) {
      throw Refused.because("the metadata are newer");
    }
    Machine at = world.alive(leader);
    at.process.learnSnapshot(controller, controller.versionedBy());
    world.passesImage(leader);
    world.history.snapshotsLoaded++;
    if (at.alter.answer != null) {
      Messages.drop(at);
    }
  }

  /** What there is now some brokers have yet to apply, and may when there is something newer. */
  private static void delaysImage(World world) throws Exception {
    HeldController controller = world.controller();
    PartitionRegistration now = controller.partition();
    boolean another =
        world.image != null && world.image.partition().partitionEpoch >= now.partitionEpoch;
    if (world.history.oldMetadata >= world.settings.oldMetadata() || another) {
      throw Refused.because("beyond the model's bounds");
    }
    Set<Integer> readers = new TreeSet<>();
    Set<Integer> away = new TreeSet<>();
    for (int b = 0; b < world.size(); b++) {
      if (hasToApply(world, b)) {
        readers.add(b);
      }
      if (controller.fenced(b) || controller.shuttingDown(b) && !world.look(b).hasStopped) {
        away.add(b);
      }
    }
    if (readers.isEmpty()) {
      throw Refused.because("the newest metadata bring nobody anything");
    }
    world.image =
        new Image(controller.log().size(), now, controller.minimum(), away, readers);
    world.history.oldMetadata++;
  }

  /** Whether the newest metadata bring the broker anything: it is tried. */
  private static boolean hasToApply(World world, int broker) throws Exception {
    Machine look = world.look(broker);
    if (world.settings.lateNews() > 0 && look.leads() && look.process.ahead()) {
      return true;
    }
    try {
      String is = learns(world.draft(), broker, News.newest(world)).action();
      return OLD.containsKey(is);
    } catch (Refused nothing) {
      return false;
    }
  }

  /**
   * Whom a leader's own metadata calls fenced or shutting down: KRaftMetadataCache; nobody for a
   * follower.
   */
  static List<String> away(World world, Machine machine) {
    List<Integer> found = new ArrayList<>();
    for (int b = 0; b < world.size() && machine.leads(); b++) {
      Parts.Cache cache = machine.process.parts.cache;
      if (cache.isBrokerFenced(b) || cache.isBrokerShuttingDown(b)) {
        found.add(b);
      }
    }
    return Steps.names(found);
  }
}
