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
import java.util.function.IntFunction;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.raft.HeldClient;
import org.apache.kafka.raft.HeldRequest;
import org.apache.kafka.raft.VoterRequests;
import org.apache.kafka.server.common.OffsetAndEpoch;

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
      voter.disk.share();
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

  /** A request under way that its sender has given up, and what that was when it was sent. */
  record LateRequest(
      int sender, int receiver, String kind, ApiMessage data, int epoch, List<Integer> log) {}

  /** What no voter remembers: who led each epoch, and all that any leader has committed. */
  private final Map<Integer, TreeSet<Integer>> leaders = new HashMap<>();

  private List<Integer> committed = List.of();
  private List<Map<Integer, Integer>> committedVoters = List.of();
  int writes;
  int restarts;
  int lostDisks;
  int snapshots;
  int changes;
  int lateRequests;

  /** Null while there is none. */
  LateRequest late;

  /** How many records of the model each snapshot stands for. */
  private final Map<OffsetAndEpoch, Integer> snapshotEnds = new HashMap<>();

  /** Who was formatted without voters before anything happened. */
  private final TreeSet<Integer> joiners = new TreeSet<>();

  /** Whom the list of each node leaves out, with which its first disk was formatted. */
  private final Map<Integer, TreeSet<Integer>> missing = new HashMap<>();

  /** Whose later disk was formatted as a quorum of one. */
  private final TreeSet<Integer> loneNodes = new TreeSet<>();

  /** Whether the log has the voters, or the configuration of each process. */
  private final boolean dynamic;

  private final IntFunction<Disk> firstDisks;
  private final Place[] places;

  /** By who asked, and whom. */
  private final Answer[][] answers;

  /** The voters that this draft may change, until it is settled. */
  private final Map<Integer, Voter> drafts = new HashMap<>();

  /** Voters 1 to {@code voters} with empty disks; {@code dynamic}: they are in the log. */
  World(int voters, boolean dynamic, IntFunction<Disk> firstDisks) {
    this.dynamic = dynamic;
    this.firstDisks = firstDisks;
    places = new Place[voters + 1];
    answers = new Answer[voters + 1][voters + 1];
    format();
    settle();
  }

  private World(World of) {
    dynamic = of.dynamic;
    firstDisks = of.firstDisks;
    joiners.addAll(of.joiners);
    of.missing.forEach((v, all) -> missing.put(v, new TreeSet<>(all)));
    loneNodes.addAll(of.loneNodes);
    committedVoters = of.committedVoters;
    snapshotEnds.putAll(of.snapshotEnds);
    snapshots = of.snapshots;
    changes = of.changes;
    late = of.late;
    lateRequests = of.lateRequests;
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

  /** The voter set of each of these records; null where it has none. */
  List<Map<Integer, Integer>> committedVoters() {
    return committedVoters;
  }

  TreeSet<Integer> joiners() {
    return joiners;
  }

  TreeSet<Integer> missing(int v) {
    return missing.getOrDefault(v, new TreeSet<>());
  }

  int omissions() {
    return missing.values().stream().mapToInt(TreeSet::size).sum();
  }

  TreeSet<Integer> loneNodes() {
    return loneNodes;
  }

  /** The list with which the first disk of a node is formatted; of nobody for who joins later. */
  TreeSet<Integer> firstVoters(int v) {
    TreeSet<Integer> all = new TreeSet<>();
    for (int q = 1; q <= voters() && !joiners.contains(v); q++) {
      if (!joiners.contains(q) && !missing(v).contains(q)) {
        all.add(q);
      }
    }
    return all;
  }

  /** How many records of the model a snapshot stands for. It has committed ones only. */
  int end(OffsetAndEpoch snapshot) {
    return snapshotEnds.get(snapshot);
  }

  boolean isDynamic() {
    return dynamic;
  }

  // What a step changes

  /**
   * Each node has a first disk, and all but those that join later know who the voters are. A process
   * that finds itself alone in its list leads at once, so it has not started yet.
   */
  private void format() {
    for (int v = 1; v <= voters(); v++) {
      Disk disk = firstDisks.apply(v);
      TreeSet<Integer> list = firstVoters(v);
      if (dynamic && !list.isEmpty()) {
        format(disk, list);
      }
      if (!missing(v).isEmpty() && list.size() == 1) {
        drafts.put(v, new Voter(v, disk, null));
      } else {
        start(v, disk);
      }
    }
  }

  private static void format(Disk disk, TreeSet<Integer> list) {
    Map<Integer, Uuid> first = new HashMap<>();
    list.forEach(q -> first.put(q, disk.directory(q)));
    VoterSets.format(disk, VoterRequests.first(first));
  }

  /** Before anything happens the list of this node leaves another out. */
  void leaveOut(int v, int q) {
    missing.computeIfAbsent(v, ignored -> new TreeSet<>()).add(q);
    format();
  }

  /** The empty disk of a node that does not run is formatted as a quorum of one. */
  void formatAlone(int v) {
    Disk disk = places[v].copy().disk;
    format(disk, new TreeSet<>(List.of(v)));
    drafts.put(v, new Voter(v, disk, null));
    loneNodes.add(v);
  }

  /** Before anything happens this node is formatted without voters, and is none of them. */
  void formatWithoutVoters(int v) {
    joiners.add(v);
    format();
  }

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
    loneNodes.remove(v);
  }

  /** The disk of a voter that a step is changing. */
  Disk disk(int v) {
    process(v);
    return drafts.get(v).disk;
  }

  /** A process of a voter starts on the disk that it has. */
  void start(int v) {
    if (places[v].voter.runs()) {
      throw Refused.because("a process of v" + v + " runs");
    }
    start(v, places[v].copy().disk);
  }

  private void start(int v, Disk disk) {
    HeldClient<String> process =
        dynamic ? HeldClient.ofNode(v, voters(), disk) : HeldClient.ofWords(v, voters(), disk);
    drafts.put(v, new Voter(v, disk, process));
  }

  /** A voter has taken this snapshot, which stands for so many records of the model. */
  void noteSnapshot(OffsetAndEpoch id, int end) {
    snapshotEnds.put(id, end);
    snapshots++;
  }

  /** From now on nothing changes here any more. */
  void settle() {
    drafts.values().forEach(this::answerWaitingFetches);
    drafts.forEach((v, voter) -> places[v] = new Place(voter));
    for (int v : drafts.keySet()) {
      dropAnswers(v);
      remember(places[v].row);
    }
    drafts.clear();
  }

  /** Fetches that waited at this voter have answers now, or end with its process. */
  private void answerWaitingFetches(Voter voter) {
    for (int from = 1; from <= voters(); from++) {
      Answer kept = answers[from][voter.id];
      if (kept == null || !kept.waits()) {
        continue;
      }
      HeldRequest request = places[from].row.requests().get(voter.id);
      ApiMessage said = voter.runs() ? voter.process.answerAfterWaiting(from) : null;
      if (!voter.runs()) {
        answers[from][voter.id] = null;
      } else if (said != null) {
        answers[from][voter.id] = Messages.answer(request, Messages.response(said), voter.disk);
      }
    }
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
    if (!row.role().equals("leader") && !row.role().equals("resigned")) {
      return;
    }
    if (row.role().equals("leader")) {
      leaders.computeIfAbsent(row.epoch(), ignored -> new TreeSet<>()).add(row.id());
    }
    int watermark = row.logWatermark();
    if (watermark > committed.size()) {
      List<Map<Integer, Integer>> voters = new ArrayList<>(committedVoters);
      for (int o = voters.size(); o < watermark; o++) {
        voters.add(row.votersAt().get(o));
      }
      committedVoters = voters;
      committed = new ArrayList<>(row.log().subList(0, watermark));
    }
  }
}
