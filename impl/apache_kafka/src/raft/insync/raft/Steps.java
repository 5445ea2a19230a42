package insync.raft;

import insync.conform.Refused;
import insync.conform.SystemUnderTest.Step;
import insync.raft.Messages.Answer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.raft.EpochState;
import org.apache.kafka.raft.HeldClient;
import org.apache.kafka.raft.HeldRequest;
import org.apache.kafka.raft.VoterRequests;
import org.apache.kafka.raft.errors.NotLeaderException;
import org.apache.kafka.server.common.OffsetAndEpoch;

/** The actions of the model, each as one input of one voter. */
final class Steps {
  /** The roles that have an election timer, and are not waiting for anything else. */
  private static final Set<String> ELECTION_TIMER = Set.of("unattached", "candidate");

  /** Parameters that name the other end of a message. */
  private static final Set<String> MESSAGE_PARTNERS = Set.of("nominee", "leader", "f", "q");

  /** What a request says of its sender's log, and what else may be late. */
  private static final Set<String> SPEAKING_OF_LOG = Set.of("pre_vote", "vote", "fetch");

  private static final Set<String> LATE = Set.of("pre_vote", "vote", "fetch", "begin", "end");

  /** What happens only where the log has the voters. */
  private static final Set<String> OF_VOTERS =
      Set.of(
          "node_is_formatted_without_voters",
          "leader_adds_voter",
          "leader_removes_voter",
          "leader_updates_voter",
          "observer_finds_leader");

  private interface AtOne {
    void take(World world, int r);
  }

  private interface BetweenTwo {
    void take(World world, int r, int other);
  }

  private record Action(String other, AtOne one, BetweenTwo two) {}

  private final Map<String, Action> actions = new LinkedHashMap<>();

  Steps() {
    atOne("voter_stands", Steps::stand);
    atOne("prospective_gives_up", (w, r) -> fire(w, r, "prospective"));
    atOne("resigned_stands", (w, r) -> fire(w, r, "resigned"));
    atOne("leader_resigns", Steps::resign);
    atOne("leader_appends", Steps::append);
    atOne("voter_crashes", Steps::crash);
    atOne("voter_loses_disk", Steps::loseDisk);
    atOne("voter_starts", World::start);
    arrival("voter_answers_pre_vote", "nominee", "pre_vote");
    arrival("voter_answers_vote", "nominee", "vote");
    arrival("voter_answers_begin", "leader", "begin");
    arrival("voter_answers_end", "leader", "end");
    arrival("leader_answers_fetch", "f", "fetch");
    comeback("prospective_counts", "pre_vote");
    comeback("candidate_counts", "vote");
    comeback("follower_takes_fetch", "fetch");
    comeback("leader_hears_error", "begin", "end");
    actions.put("voter_fails_at_request", new Action("leader", null, Steps::failAtRequest));
    actions.put("voter_fails_at_answer", new Action("q", null, Steps::failAtAnswer));
    atOne("node_is_formatted_without_voters", Steps::formatWithoutVoters);
    actions.put("list_leaves_out", new Action("q", null, Steps::leaveOut));
    atOne("node_is_formatted_alone", Steps::formatAlone);
    actions.put("leader_adds_voter", new Action("v", null, Steps::add));
    actions.put("leader_removes_voter", new Action("v", null, Steps::remove));
    actions.put("leader_updates_voter", new Action("v", null, Steps::update));
    actions.put("observer_finds_leader", new Action("q", null, Steps::findLeader));
    actions.put("voter_takes_snapshot", new Action("end", null, Steps::takeSnapshot));
    actions.put("waiting_fetch_times_out", new Action("f", null, Steps::timeOut));
    actions.put("sender_gives_up", new Action("q", null, Steps::giveUp));
    lateArrival("late_pre_vote_arrives", "nominee", "pre_vote");
    lateArrival("late_vote_arrives", "nominee", "vote");
    lateArrival("late_begin_arrives", "leader", "begin");
    lateArrival("late_end_arrives", "leader", "end");
    lateArrival("late_fetch_arrives", "f", "fetch");
    arrival("leader_answers_fetch_snapshot", "f", "fetch_snapshot");
    actions.put("follower_takes_snapshot", new Action("q", null, Steps::takeFetchedSnapshot));
  }

  private void atOne(String name, AtOne one) {
    actions.put(name, new Action(null, one, null));
  }

  /** A request of this kind, from the voter of this parameter, arrives at r. */
  private void arrival(String name, String sender, String kind) {
    actions.put(name, new Action(sender, null, (w, r, q) -> answer(w, q, r, kind)));
  }

  /** A request of this kind arrives that the voter of this parameter has given up. */
  private void lateArrival(String name, String sender, String kind) {
    actions.put(name, new Action(sender, null, (w, r, q) -> takeLate(w, q, r, kind)));
  }

  /** The answer to a request of one of these kinds comes back to r. */
  private void comeback(String name, String... kinds) {
    actions.put(name, new Action("q", null, (w, r, q) -> take(w, r, q, List.of(kinds))));
  }

  boolean has(String name) {
    return actions.containsKey(name);
  }

  void take(World world, Step step) {
    Action action = actions.get(step.action());
    int r = Snapshot.id(step.parameters().get("r"));
    if (action.other() == null) {
      action.one().take(world, r);
      return;
    }
    Object named = step.parameters().get(action.other());
    int other = action.other().equals("end") ? (int) named : Snapshot.id(named);
    if (r == other && MESSAGE_PARTNERS.contains(action.other())) {
      throw Refused.because("a voter sends itself nothing");
    }
    action.two().take(world, r, other);
  }

  /**
   * Every step that may be tried, among so many voters. {@code dynamic}: voters change. {@code
   * snapshots}: the last offset at which a snapshot ends, 0 without any. {@code late}: requests
   * may be given up that arrive later.
   */
  List<Step> candidates(int voters, boolean dynamic, int snapshots, boolean late) {
    List<Step> all = new ArrayList<>();
    actions.forEach(
        (name, action) -> {
          boolean has =
              (dynamic || !OF_VOTERS.contains(name))
                  && (snapshots > 0 || !name.contains("snapshot"))
                  && (HeldClient.FETCHES_WAIT || !name.contains("waiting"))
                  && (late || !name.startsWith("late") && !name.startsWith("sender"));
          for (int r = 1; has && r <= voters; r++) {
            addAll(all, name, action, Snapshot.name(r), voters, snapshots);
          }
        });
    return all;
  }

  private static void addAll(
      List<Step> all, String name, Action action, String r, int voters, int snapshots) {
    if (action.other() == null) {
      all.add(new Step(name, Map.of("r", r)));
    } else if (action.other().equals("end")) {
      for (int end = 1; end <= snapshots; end++) {
        all.add(new Step(name, Map.of("r", r, "end", end)));
      }
    } else {
      for (int q = 1; q <= voters; q++) {
        String other = Snapshot.name(q);
        if (!other.equals(r) || name.equals("leader_removes_voter")) {
          all.add(new Step(name, Map.of("r", r, action.other(), other)));
        }
      }
    }
  }

  // Timers

  private static void stand(World world, int r) {
    String role = world.place(r).row.role();
    HeldClient<String> process = world.process(r);
    EpochState before = process.state();
    boolean fired =
        ELECTION_TIMER.contains(role)
            ? process.fire("electionTimer")
            : role.equals("follower") && process.fire("fetchTimer");
    if (!fired) {
      throw Refused.because("a " + role + " has no such timer");
    }
    if (process.state() == before) {
      process.fire("backoffTimer"); // before Kafka 4.0 a candidate waits once more
    }
    if (process.state() == before) {
      throw Refused.answer("nothing comes of its timer");
    }
  }

  private static void fire(World world, int r, String role) {
    HeldClient<String> process = world.process(r);
    if (!world.place(r).row.role().equals(role) || !process.fire("electionTimer")) {
      throw Refused.because("it is " + world.place(r).row.role());
    }
  }

  // What somebody wants

  private static void resign(World world, int r) {
    HeldClient<String> process = world.process(r);
    EpochState before = process.state();
    try {
      process.resign();
    } catch (IllegalArgumentException problem) { // it is told so if it does not lead
      throw Refused.answer("it throws " + problem);
    }
    if (process.state() == before) {
      throw Refused.answer("it does not resign");
    }
  }

  private static void append(World world, int r) {
    try {
      world.process(r).append("x");
    } catch (NotLeaderException problem) {
      throw Refused.answer("it throws " + problem);
    }
    world.writes++;
  }

  // Faults

  private static void crash(World world, int r) {
    world.stop(r);
    world.restarts++;
  }

  private static void loseDisk(World world, int r) {
    world.loseDisk(r);
    world.lostDisks++;
  }

  // Messages

  private static void answer(World world, int sender, int r, String kind) {
    HeldRequest request = world.request(sender, r, kind);
    ApiMessage data = Messages.request(request.data());
    HeldClient<String> process = world.process(r);
    ApiMessage said = unlessItEnds(() -> process.answer(request, data));
    if (said == null && kind.equals("fetch")) {
      Integer watermark = process.highWatermark();
      Integer known = watermark == null ? null : world.disk(r).position(watermark);
      world.put(sender, r, Messages.answerForLater(request, process.epoch(), process.leader(), known));
      return;
    }
    Answer answer = Messages.answer(request, Messages.response(said), world.disk(r));
    if (answer.kind().equals("none")) { // a success changes nothing at who asked
      acknowledge(world.process(sender), r, answer);
    } else {
      world.put(sender, r, answer);
    }
  }

  /** A success comes back to a leader. That ends its process where who answers is no voter now. */
  private static void acknowledge(HeldClient<String> leader, int from, Answer answer) {
    try {
      leader.take(from, answer.data());
    } catch (IllegalArgumentException problem) {
      throw Refused.answer("the leader's process ends: " + problem.getMessage());
    }
  }

  private static void take(World world, int r, int q, List<String> kinds) {
    HeldRequest request = world.place(r).row.requests().get(q);
    Answer answer = world.answer(r, q);
    if (request == null || answer == null || answer.waits() || !kinds.contains(Messages.kind(request))) {
      throw Refused.because("there is no such answer");
    }
    HeldClient<String> process = world.process(r);
    unlessItEnds(
        () -> {
          process.take(q, answer.data());
          return null;
        });
  }

  private static void giveUp(World world, int r, int q) {
    Snapshot.Row row = world.place(r).row;
    HeldRequest request = row.requests().get(q);
    if (request == null || world.answer(r, q) != null || world.late != null) {
      throw Refused.because("there is no such request, or another is late");
    }
    String kind = Messages.kind(request);
    if (!LATE.contains(kind)) {
      throw Refused.cannot("no " + kind + " is late here");
    }
    List<Integer> log = SPEAKING_OF_LOG.contains(kind) ? row.log() : List.of();
    world.late = new World.LateRequest(r, q, kind, request.data(), row.epoch(), log);
    world.lateRequests++;
  }

  /** Nobody waits for the answer. */
  private static void takeLate(World world, int sender, int r, String kind) {
    World.LateRequest late = world.late;
    boolean isThis =
        late != null && late.sender() == sender && late.receiver() == r && late.kind().equals(kind);
    if (!isThis) {
      throw Refused.because("no such request is late");
    }
    HeldClient<String> process = world.process(r);
    unlessItEnds(() -> process.answer(Messages.request(late.data())));
    world.late = null;
  }

  private static void timeOut(World world, int r, int f) {
    Answer answer = world.answer(f, r);
    if (answer == null || !answer.waits()) {
      throw Refused.because("no fetch waits");
    }
    world.process(r).timesOut(f);
  }

  private static void takeFetchedSnapshot(World world, int r, int q) {
    Answer answer = world.answer(r, q);
    take(world, r, q, List.of("fetch_snapshot"));
    Disk disk = world.disk(r);
    if (answer.snapshot() != null && disk.start > 0 && disk.batches.isEmpty()) {
      disk.replaceBefore(answer.snapshot(), disk.start);
    }
  }

  // Snapshots

  private static void takeSnapshot(World world, int r, int end) {
    HeldClient<String> process = world.process(r);
    Disk disk = world.disk(r);
    if (end > disk.offsets.size()) {
      throw Refused.because("its log is shorter");
    }
    Integer known = world.place(r).row.highWatermark();
    if (end <= world.place(r).row.logWatermark() && (known == null || known < end)) {
      throw Refused.because("its log knows that more is committed than its state does");
    }
    int offset = disk.offset(end);
    OffsetAndEpoch id = new OffsetAndEpoch(offset, disk.epochs.get(offset - 1));
    try {
      if (!process.snapshots(id)) {
        throw Refused.answer("it has a later snapshot, or this one");
      }
    } catch (IllegalArgumentException problem) {
      throw Refused.answer("it throws " + problem);
    }
    world.noteSnapshot(id, end);
  }

  // Voters that change

  private static void formatWithoutVoters(World world, int r) {
    int voters = world.voters() - world.joiners().size() - 1;
    if (world.joiners().contains(r) || voters < 1) {
      throw Refused.because("somebody has to be a voter");
    }
    checkBeginning(world);
    if (world.omissions() > 0) {
      throw Refused.because("lists that differ are without those that join later");
    }
    if (voters == 1) {
      throw Refused.cannot("an only voter leads as soon as it starts");
    }
    world.formatWithoutVoters(r);
  }

  private static void checkBeginning(World world) {
    for (int v = 1; v <= world.voters(); v++) {
      Snapshot.Row row = world.place(v).row;
      boolean waits = row.runs() || world.restarts == 0;
      if (!waits || row.directory() > 0 || row.epoch() > 0 || !row.role().equals("unattached")) {
        throw Refused.because("something has happened");
      }
    }
  }

  private static void leaveOut(World world, int r, int q) {
    if (!world.firstVoters(r).contains(r) || !world.firstVoters(r).contains(q)) {
      throw Refused.because("the list is without it");
    }
    checkBeginning(world);
    if (world.restarts > 0) {
      throw Refused.because("something has happened");
    }
    world.leaveOut(r, q);
  }

  private static void formatAlone(World world, int r) {
    Snapshot.Row row = world.place(r).row;
    boolean isNew = row.directory() > 0 && row.epoch() == 0 && row.log().isEmpty();
    if (row.runs() || !isNew || world.loneNodes().contains(r)) {
      throw Refused.because("its disk is no empty one that waits for a process");
    }
    world.formatAlone(r);
  }

  private static void add(World world, int r, int v) {
    Snapshot.Row row = world.place(v).row;
    HeldClient<String> process = world.process(r);
    if (process.requests().containsKey(v)) {
      process.waits();
    }
    ApiMessage said = process.answer(VoterRequests.adds(v, directory(world, v)));
    HeldRequest versions = process.requests().get(v);
    if (said == null && versions != null && Messages.kind(versions).equals("api_versions")) {
      if (!row.runs()) {
        throw Refused.because("nobody answers ApiVersions");
      }
      process.take(v, Messages.response(VoterRequests.versions()));
    }
    checkChange(world, r);
  }

  private static void remove(World world, int r, int v) {
    HeldClient<String> process = world.process(r);
    Integer disk = lastVoters(world, r).get(v);
    Uuid directory = new Disk(disk == null ? 0 : disk, 1).directory(v);
    process.answer(VoterRequests.removes(v, directory));
    checkChange(world, r);
  }

  private static void update(World world, int r, int v) {
    HeldClient<String> process = world.process(r);
    process.answer(VoterRequests.updates(v, directory(world, v), process.epoch()));
    checkChange(world, r);
  }

  private static Uuid directory(World world, int v) {
    return new Disk(world.place(v).row.directory(), 1).directory(v);
  }

  private static Map<Integer, Integer> lastVoters(World world, int r) {
    var all = world.process(r).voterSets();
    return all.isEmpty() ? Map.of() : VoterSets.of(all.lastEntry().getValue());
  }

  /** A leader has appended a voter set; refused if it has not. */
  private static void checkChange(World world, int r) {
    if (world.disk(r).batches.size() == world.place(r).row.log().size()) {
      throw Refused.answer("the voters stay");
    }
    world.changes++;
  }

  /**
   * A node that is no voter asks a server by a fetch who leads. Where the server that is asked
   * leads itself, in the epoch of that node, it would send records, too; then one answers that
   * follows it.
   */
  private static void findLeader(World world, int r, int q) {
    Snapshot.Row row = world.place(r).row;
    Snapshot.Row asked = world.place(q).row;
    boolean waits = row.role().equals("unattached") || row.role().equals("follower");
    if (!asked.runs() || !row.runs() || row.isVoter() || !waits) {
      throw Refused.because("it asks nobody who leads");
    }
    HeldClient<String> process = world.process(r);
    if (row.role().equals("follower")) {
      process.waits();
    }
    HeldRequest fetch =
        process.requests().values().stream()
            .filter(request -> request.outbound().destination().id() < 0)
            .findFirst()
            .orElseThrow(() -> Refused.answer("it asks nobody"));
    ApiMessage data = Messages.request(fetch.data());
    boolean leads = asked.role().equals("leader") && asked.epoch() == row.epoch();
    ApiMessage answer =
        leads
            ? VoterRequests.leads((FetchRequestData) data, q, asked.epoch())
            : world.process(q).answer(fetch, data);
    EpochState before = process.state();
    unlessItEnds(
        () -> {
          process.take(fetch.outbound().destination().id(), Messages.response(answer));
          return null;
        });
    if (process.state() == before) {
      throw Refused.answer("it hears nothing new");
    }
  }

  /** What comes of an input; refused where it ends the process by a fatal fault. */
  private static ApiMessage unlessItEnds(Supplier<ApiMessage> input) {
    try {
      return input.get();
    } catch (IllegalStateException problem) {
      if (!ImpossibleLeader.isReason(problem)) {
        throw problem;
      }
      throw Refused.answer("the process ends: " + problem.getMessage());
    }
  }

  private static void failAtRequest(World world, int r, int leader) {
    HeldRequest request = world.place(leader).row.requests().get(r);
    if (request == null || world.answer(leader, r) != null) {
      throw Refused.because("there is no such request");
    }
    HeldClient<String> process = world.process(r);
    ends(world, r, () -> process.answer(request, Messages.request(request.data())));
  }

  private static void failAtAnswer(World world, int r, int q) {
    Answer answer = world.answer(r, q);
    if (answer == null || answer.waits()) {
      throw Refused.because("there is no such answer");
    }
    HeldClient<String> process = world.process(r);
    ends(world, r, () -> process.take(q, answer.data()));
  }

  /** The process ends by this input; refused if it does not. */
  private static void ends(World world, int r, Runnable input) {
    try {
      input.run();
    } catch (IllegalStateException problem) {
      if (!ImpossibleLeader.isReason(problem)) {
        throw problem;
      }
      world.stop(r);
      return;
    }
    throw Refused.answer("the process does not end");
  }
}
