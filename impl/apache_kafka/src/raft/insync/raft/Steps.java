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
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.raft.EpochState;
import org.apache.kafka.raft.HeldClient;
import org.apache.kafka.raft.HeldRequest;
import org.apache.kafka.raft.errors.NotLeaderException;

/** The actions of the model, each as one input of one voter. */
final class Steps {
  /** The roles that have an election timer, and are not waiting for anything else. */
  private static final Set<String> ELECTION_TIMER = Set.of("unattached", "candidate");

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
  }

  private void atOne(String name, AtOne one) {
    actions.put(name, new Action(null, one, null));
  }

  /** A request of this kind, from the voter of this parameter, arrives at r. */
  private void arrival(String name, String sender, String kind) {
    actions.put(name, new Action(sender, null, (w, r, q) -> answer(w, q, r, kind)));
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
    int other = Snapshot.id(step.parameters().get(action.other()));
    if (r == other) {
      throw Refused.because("a voter sends itself nothing");
    }
    action.two().take(world, r, other);
  }

  /** Every step that may be tried, among so many voters. */
  List<Step> candidates(int voters) {
    List<Step> all = new ArrayList<>();
    actions.forEach(
        (name, action) -> {
          for (int r = 1; r <= voters; r++) {
            for (int q = 1; q <= voters; q++) {
              if (action.other() == null && q == 1) {
                all.add(new Step(name, Map.of("r", Snapshot.name(r))));
              } else if (action.other() != null && q != r) {
                all.add(
                    new Step(
                        name, Map.of("r", Snapshot.name(r), action.other(), Snapshot.name(q))));
              }
            }
          }
        });
    return all;
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
    Answer answer = Messages.answer(request, Messages.response(said));
    if (answer.kind().equals("none")) { // a success changes nothing at who asked
      world.process(sender).take(r, answer.data());
    } else {
      world.put(sender, r, answer);
    }
  }

  private static void take(World world, int r, int q, List<String> kinds) {
    HeldRequest request = world.place(r).row.requests().get(q);
    Answer answer = world.answer(r, q);
    if (request == null || answer == null || !kinds.contains(Messages.kind(request))) {
      throw Refused.because("there is no such answer");
    }
    HeldClient<String> process = world.process(r);
    unlessItEnds(
        () -> {
          process.take(q, answer.data());
          return null;
        });
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
    if (answer == null) {
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
