package insync.kafka;

import insync.conform.Refused;
import insync.objects.Copier;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * The controller, the brokers, and what happened. A step is taken on a {@link #draft}, which copies
 * whatever it writes to, so that the world before it stays as it is; what is only read is shared.
 */
final class World {
  final Settings settings;
  final History history;

  /** Metadata that some brokers have yet to apply while there may be newer ones; null for none. */
  Image image;

  /** Whether nothing was done in it since the reset. */
  final boolean fresh;

  private final Slot<Machine>[] machines;
  private final boolean[] own;
  private Slot<HeldController> controller;
  private boolean ownController;

  /**
   * A part of worlds that is not written to any more, with the mould that copies of it are made
   * from.
   */
  private static final class Slot<T> {
    final T part;
    private Copier.Mould<T> mould;

    Slot(T part) {
      this.part = part;
    }

    Slot<T> copy() {
      if (Steering.IN_PLACE) {
        return this;
      }
      if (mould == null) {
        mould = new Copier.Mould<>(part);
      }
      return new Slot<>(mould.copy());
    }
  }

  /**
   * The world after a reset: all brokers have learned that {@code first} leads, and the others have
   * sent a fetch; those that are no replica have nothing.
   */
  World(Settings settings, int first, Collection<Integer> replicas) throws Exception {
    this.settings = settings;
    history = new History();
    history.least = Math.min(settings.minInsync(), replicas.size());
    fresh = true;
    HeldController made =
        new HeldController(
            settings.replicas(),
            first,
            replicas,
            settings.minInsync(),
            settings.flushAlways(),
            Steering.ELIGIBLE_REPLICAS);
    if (hasSetting()) {
      made.setUnclean(settings.unclean());
    }
    controller = new Slot<>(made);
    machines = none(settings.replicas());
    own = new boolean[settings.replicas()];
    for (int i = 0; i < machines.length; i++) {
      Machine machine = new Machine(i);
      machine.minimum = settings.minInsync();
      machine.process =
          new Broker(i, made.epoch(i), machine.clock, Disk.NEW, machine.directory());
      machine.process.load(made.log(), false);
      machines[i] = new Slot<>(machine);
    }
    for (Slot<Machine> machine : machines) {
      machine.part.process.learn(made);
    }
    for (Slot<Machine> machine : machines) {
      if (machine.part.id != first) {
        Messages.send(machine.part);
      }
    }
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static Slot<Machine>[] none(int size) {
    return new Slot[size];
  }

  private World(World before) {
    settings = before.settings;
    history = before.history.copy();
    image = before.image;
    fresh = false;
    machines = before.machines.clone();
    own = new boolean[machines.length];
    controller = before.controller;
  }

  /** A world to take a step in. */
  World draft() {
    return new World(this);
  }

  int size() {
    return machines.length;
  }

  /**
   * Whether the topic has the setting, which a design of what people do has from its start. In the
   * others an operator elects.
   */
  private boolean hasSetting() {
    return settings.operations();
  }

  /** Whether Kafka itself elects a replica that is not eligible, in the step that leaves no other. */
  boolean electsUnclean() {
    return hasSetting() && controller.part.unclean();
  }

  /** Whether a replica that is not eligible may be elected. */
  boolean unclean() {
    return hasSetting() ? controller.part.unclean() : settings.unclean();
  }

  /** A broker's machine, to look at. */
  Machine look(int id) {
    return machines[id].part;
  }

  /** A broker's machine, to change. */
  Machine at(int id) {
    if (!own[id]) {
      machines[id] = machines[id].copy();
      own[id] = true;
    }
    return machines[id].part;
  }

  /**
   * A broker's machine, to change the messages that it has on their way, and nothing else of it.
   */
  Machine beside(int id) {
    if (!own[id] && !Steering.IN_PLACE) {
      machines[id] = new Slot<>(new Machine(machines[id].part));
    }
    return machines[id].part;
  }

  /** A machine without its process, to change: what it had in memory need not be copied. */
  Machine without(Machine was) {
    Machine made = new Machine(was.id);
    made.clock.now = was.clock.now;
    made.minimum = was.minimum();
    made.disksBefore = was.disksBefore;
    made.alter =
        was.alter.kind.equals("requested") ? was.alter.withoutHandler() : new Machine.Alter();
    machines[was.id] = new Slot<>(made);
    own[was.id] = true;
    return made;
  }

  /** A broker's machine whose process runs, to change. */
  Machine alive(int id) {
    if (look(id).process == null) {
      throw Refused.because("the broker does not run");
    }
    Machine machine = at(id);
    machine.clock.now +=
        Steering.STILL || settings.ownView() ? 0 : 40_000; // more than replica.lag.time.max.ms
    return machine;
  }

  /** The controller, to look at. */
  HeldController controller() {
    return controller.part;
  }

  /** The controller, to change. */
  HeldController decides() {
    if (!ownController) {
      controller = controller.copy();
      ownController = true;
    }
    return controller.part;
  }

  /** A copy of the controller to ask what it would do. */
  HeldController wouldDecide() {
    return Copier.copy(controller.part);
  }

  /** A broker has applied the image or newer metadata, or has stopped. */
  void passesImage(int id) {
    image = image == null ? null : image.without(id);
  }

  /** Whether the epochs are within the model's bounds. */
  boolean within() {
    PartitionRegistration now = controller().partition();
    return now.leaderEpoch <= settings.epochs() && now.partitionEpoch <= settings.isrChanges();
  }

  /** After a step: what was committed and acknowledged in it. */
  void settle() {
    for (int i = 0; i < machines.length; i++) {
      if (own[i] && look(i).process != null) {
        committed(look(i).process);
        acknowledged(look(i));
      }
    }
  }

  private void committed(Broker broker) {
    if (!broker.leads()) {
      return;
    }
    long watermark = broker.watermark();
    if (watermark > history.committed.size()) {
      List<Integer> names = new ArrayList<>();
      broker.rows().subList(0, (int) watermark).forEach(row -> names.add(row.name()));
      history.committed = names;
    }
  }

  private void acknowledged(Machine machine) {
    Broker broker = machine.process;
    for (Broker.Reply answer : broker.replies) {
      if (settings.acks() != 0 && answer.error() == Errors.NONE && !acrossEpochs(machine, answer)) {
        history.acked.add(answer.name());
      }
    }
    broker.replies.clear();
  }

  /**
   * Whether an acknowledgement is the one that the model gives no producer, and no other (difference
   * B): in a later epoch than the record's, of a leader that has led ever since, and of a record
   * below its watermark.
   */
  private boolean acrossEpochs(Machine machine, Broker.Reply answer) {
    Broker broker = machine.process;
    boolean ledSince =
        broker.leads()
            && broker.leaderEpoch() > answer.epoch()
            && machine.leadingSince <= answer.epoch();
    if (Steering.EXACT || settings.producersWait() || !ledSince) {
      return false;
    }
    List<Broker.Row> rows = broker.rows();
    int end = (int) Math.min(broker.watermark(), rows.size());
    return rows.subList(0, end).contains(new Broker.Row(answer.name(), answer.epoch()));
  }
}
