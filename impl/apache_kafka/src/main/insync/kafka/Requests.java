package insync.kafka;

import java.util.Map;
import org.apache.kafka.common.network.Send;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Request;
import org.apache.kafka.network.metrics.RequestChannelMetrics;
import scala.Function1;
import scala.Option;
import scala.runtime.BoxedUnit;

/** RequestChannel, in which nothing waits. */
final class Requests extends Shapes.Channel {
  private final Apis apis;

  Requests(Time time, RequestChannelMetrics metrics, Apis apis) {
    super(time, metrics);
    this.apis = apis;
  }

  /** Kafka's since 4.4: no {@code @Override}, for a release has this one or the next. */
  public void sendResponse(Request request, AbstractResponse response) {
    apis.takeResponse(request.header(), response);
  }

  /** Kafka's until 4.3. */
  public void sendResponse(
      Request request, AbstractResponse response, Option<Function1<Send, BoxedUnit>> whenSent) {
    apis.takeResponse(request.header(), response);
  }

  @Override
  public void sendNoOpResponse(Request request) {
    apis.takeResponse(request.header(), null);
  }

  @Override
  public void closeConnection(Request request, Map<Errors, Integer> errors) {
    apis.takeResponse(request.header(), null);
  }
}
