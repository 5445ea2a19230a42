package insync.raft;

import insync.conform.Refused;
import insync.objects.Copier;
import insync.raft.Messages.Answer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.raft.HeldClient;
import org.apache.kafka.raft.HeldRequest;

/**
 * Some voters, the answers on their way between them, and what has happened so far.
 *
 * <p>A world is a value. A step makes a draft, copies the voters that it changes into that, and
 * settles it. All other voters are shared.
 */
final class World {
  /** A voter that nobody changes any more, with what can be told of it. */
  static final class Place {
    final Voter voter;
    final Snapshot.Row row;
    private Copier.Mould<Voter> mould;

    private Place(Voter voter) {
      this.voter = voter;
      row = Snapshot.row(voter);
    }

    private Voter copy() {
      if (mould == null) {
        mould = new Copier.Mould<>(voter);
      }
      return mould.copy();
    }
  }

  /** What no voter remembers: who led each epoch, and all that any leader has committed. */
  private final Map<Integer, TreeSet<Integer>> leaders = new HashMap<>();

  private List<Integer> committed = List.of();
  int writes;
  int restarts;
  int lostDisks;

  private final Place[] places;

  /** By who asked, and whom. */
  private final Answer[][] answers;

  /** The voters that this draft may change, until it is settled. */
  private final Map<Integer, Voter> drafts = new HashMap<>();

  /** Voters 1 to {@code voters} with empty disks. */
  World(int voters) {
    places = new Place[voters + 1];
    answers = new Answer[voters + 1][voters + 1];
    for (int v = 1; v <= voters; v++) {
      start(v, new Disk(0, 1));
    }
    settle();
  }

  private World(World of) {
    places = of.places.clone();
    answers = Arrays.stream(of.answers).map(row -> row.clone()).toArray(Answer[][]::new);
    of.leaders.forEach((epoch, all) -> leaders.put(epoch, new TreeSet<>(all)));
    committed = of.committed;
    writes = of.writes;
    restarts = of.restarts;
    lostDisks = of.lostDisks;
  }

  /** The same, for a step to change. */
  World draft() {
    return new World(this);
  }

  int voters() {
    return places.length - 1;
  }

  // What a step reads

  Place place(int v) {
    return places[v];
  }

  /** The answer to the request from one voter to another; null while there is none. */
  Answer answer(int from, int to) {
    return answers[from][to];
  }

  TreeSet<Integer> leaders(int epoch) {
    return leaders.getOrDefault(epoch, new TreeSet<>());
  }

  List<Integer> committed() {
    return committed;
  }

  // What a step changes

  /** The process of this voter, to be changed; refused if none runs. */
  HeldClient<String> process(int v) {
    if (!places[v].voter.runs()) {
      throw Refused.because("no process of v" + v + " runs");
    }
    return drafts.computeIfAbsent(v, ignored -> places[v].copy()).process;
  }

  /** The request of this kind from one voter to another, as long as nobody has answered it. */
  HeldRequest request(int from, int to, String kind) {
    HeldRequest request = places[from].row.requests().get(to);
    if (request == null || answers[from][to] != null || !Messages.kind(request).equals(kind)) {
      throw Refused.because("there is no such request");
    }
    return request;
  }

  void put(int from, int to, Answer answer) {
    answers[from][to] = answer;
  }

  /** The process of a voter ends. */
  void stop(int v) {
    process(v);
    drafts.put(v, new Voter(v, drafts.get(v).disk, null));
  }

  /** The process of a voter ends, and its next one finds an empty disk. */
  void loseDisk(int v) {
    stop(v);
    drafts.put(v, new Voter(v, drafts.get(v).disk.next(), null));
  }

  /** A process of a voter starts on the disk that it has. */
  void start(int v) {
    if (places[v].voter.runs()) {
      throw Refused.because("a process of v" + v + " runs");
    }
    start(v, places[v].copy().disk);
  }

  private void start(int v, Disk disk) {
    drafts.put(v, new Voter(v, disk, HeldClient.ofWords(v, voters(), disk)));
  }

  /** From now on nothing changes here any more. */
  void settle() {
    drafts.forEach((v, voter) -> places[v] = new Place(voter));
    for (int v : drafts.keySet()) {
      dropAnswers(v);
      remember(places[v].row);
    }
    drafts.clear();
  }

  /** Answers to requests that their sender has given up count no more. */
  private void dropAnswers(int v) {
    for (int to = 1; to <= voters(); to++) {
      HeldRequest request = places[v].row.requests().get(to);
      Answer answer = answers[v][to];
      if (answer != null && (request == null || request.number() != answer.number())) {
        answers[v][to] = null;
      }
    }
  }

  private void remember(Snapshot.Row row) {
    if (!row.role().equals("leader")) {
      return;
    }
    leaders.computeIfAbsent(row.epoch(), ignored -> new TreeSet<>()).add(row.id());
    Integer watermark = row.highWatermark();
    if (watermark != null && watermark > committed.size()) {
      committed = new ArrayList<>(row.log().subList(0, watermark));
    }
  }
}
