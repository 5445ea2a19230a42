package insync.controllers;

import com.fasterxml.jackson.databind.JsonNode;
import insync.conform.Refused;
import insync.objects.Copier;
import insync.raft.Disk;
import insync.raft.Messages;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.raft.HeldRequest;

/**
 * Some controllers, the answers on their way between them, and what has happened so far.
 *
 * <p>A world is a value. A step makes a draft, copies the controllers that it changes into that,
 * and settles it. All others are shared.
 */
final class World {
  /** A controller that nobody changes any more, with what can be told of it. */
  static final class Place {
    final Controller controller;
    final Row row;
    private Copier.Mould<Controller> mould;

    private Place(Controller controller, int beginning) {
      this.controller = controller;
      row = Row.of(controller, beginning);
    }

    private Controller copy() {
      if (mould == null) {
        mould = new Copier.Mould<>(controller);
      }
      return mould.copy();
    }
  }

  /** An answer to a request that was sent with this number. */
  private record Answer(int number, ApiMessage data) {}

  /** What each leader of a partition was told in this step, by its number: a name of the model. */
  final Map<Integer, String> replies = new TreeMap<>();

  /** What a leader last committed of the metadata, which brokers hear. */
  Metadata news;

  private List<Integer> committed = List.of();
  int lostDisks;

  /** What the model has of brokers, by the names of its variables. */
  private JsonNode surroundings;

  /** The batches with which everything began; as many are the model's first record. */
  private int beginning;

  private final int brokers;
  private final int minInsync;
  private final Place[] places;
  private final Answer[][] answers;

  /** The controllers that this draft may change, until it is settled. */
  private final Map<Integer, Controller> drafts = new HashMap<>();

  /** Controllers with empty disks. */
  World(int controllers, int brokers, int minInsync) {
    this.brokers = brokers;
    this.minInsync = minInsync;
    places = new Place[controllers + 1];
    answers = new Answer[controllers + 1][controllers + 1];
    for (int c = 1; c <= controllers; c++) {
      start(c, new Disk(0, Integer.MAX_VALUE));
    }
    settle();
  }

  private World(World of) {
    places = of.places.clone();
    answers = Arrays.stream(of.answers).map(row -> row.clone()).toArray(Answer[][]::new);
    news = of.news;
    committed = of.committed;
    lostDisks = of.lostDisks;
    surroundings = of.surroundings;
    beginning = of.beginning;
    brokers = of.brokers;
    minInsync = of.minInsync;
    replies.putAll(of.replies);
  }

  /** The same, for a step to change. */
  World draft() {
    return new World(this);
  }

  /**
   * The same, where the model has these values of brokers, and nobody has been told anything yet.
   */
  World with(JsonNode values) {
    World world = draft();
    world.surroundings = values;
    world.replies.clear();
    return world;
  }

  int controllers() {
    return places.length - 1;
  }

  int brokers() {
    return brokers;
  }

  /** How many batches are the model's first record. */
  int beginning() {
    return beginning;
  }

  // What a step reads

  Row row(int c) {
    return places[c].row;
  }

  List<Integer> committed() {
    return committed;
  }

  /** What the model has of a broker. */
  JsonNode model(String variable, int broker) {
    return surroundings.path(variable).path(Names.broker(broker));
  }

  /** Whether the model has a broker in this set. */
  boolean modelHas(String variable, int broker) {
    for (JsonNode name : surroundings.path(variable)) {
      if (name.asText().equals(Names.broker(broker))) {
        return true;
      }
    }
    return false;
  }

  /** A count that the model has. */
  int model(String variable) {
    return surroundings.path(variable).asInt();
  }

  /** Who has a leader's AlterPartition; null while nobody has. */
  Integer holder(int leader) {
    for (int c = 1; c <= controllers(); c++) {
      if (row(c).pending().containsKey(leader)) {
        return c;
      }
    }
    return null;
  }

  // What a step changes

  /** A controller, to be changed. */
  Controller controller(int c) {
    return drafts.computeIfAbsent(c, ignored -> places[c].copy());
  }

  /** The controllers that have changed so far. */
  List<Controller> drafts() {
    return List.copyOf(drafts.values());
  }

  /** From now on all that is there is how everything began. */
  void begins() {
    beginning = places[1].controller.disk.batches().size();
    committed = List.of(0);
    for (int c = 1; c <= controllers(); c++) {
      drafts.put(c, places[c].controller);
    }
    settle();
    news = row(1).last();
  }

  /** The answer to a request waits on its way. */
  void put(int from, int to, int number, ApiMessage answer) {
    answers[from][to] = new Answer(number, answer);
  }

  /** The request of one controller to another, where it is of this kind and nobody has answered. */
  HeldRequest request(int from, int to, String kind) {
    HeldRequest request = controller(from).client.requests().get(to);
    boolean asks = request != null && Messages.kind(request).equals(kind);
    return asks && waiting(from, to) == null ? request : null;
  }

  /** The answer that waits on its way to who asked; null where none does. */
  ApiMessage waiting(int from, int to) {
    HeldRequest request = controller(from).client.requests().get(to);
    Answer answer = answers[from][to];
    boolean fits = answer != null && request != null && request.number() == answer.number();
    return fits ? answer.data() : null;
  }

  /** A request arrives, and is answered. */
  ApiMessage answer(int to, HeldRequest request) {
    ApiMessage said = controller(to).client.answer(request, Messages.request(request.data()));
    if (said == null) {
      throw Refused.cannot("the answer waits");
    }
    return Messages.response(said);
  }

  /** A controller loses its disk, and starts on an empty one. */
  void loseDisk(int c) {
    start(c, places[c].controller.disk.next());
    Arrays.fill(answers[c], null);
    lostDisks++;
  }

  /** The process of a controller has ended, and starts again on its disk. */
  void startAgain(int c) {
    start(c, controller(c).disk);
    Arrays.fill(answers[c], null);
  }

  private void start(int c, Disk disk) {
    drafts.put(c, new Controller(c, controllers(), disk, minInsync));
  }

  /** From now on nothing changes here any more. */
  void settle() {
    List<Controller> all = new ArrayList<>(drafts.values());
    drafts.clear();
    for (Controller controller : all) {
      if (!controller.process.faults().isEmpty()) {
        throw new IllegalStateException(controller.process.faults().get(0));
      }
      places[controller.id] = new Place(controller, beginning);
      remember(places[controller.id].row);
    }
  }

  private void remember(Row row) {
    if (row.leads() && row.end() > committed.size()) {
      committed = row.log().subList(0, row.end());
    }
  }

  /** The batches of a controller's log, as they are now. */
  List<MemoryRecords> batches(int c) {
    return controller(c).disk.batches();
  }
}
