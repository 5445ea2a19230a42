package insync.kafka;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jdk.internal.misc.Unsafe;

/**
 * A copy of everything that a broker or the controller has become: all objects that can be reached,
 * field by field.
 *
 * <p>What cannot change, or is nobody's state (configurations, metrics, loggers, metadata images,
 * records of the wire), is shared by all copies; {@link #shared} is the list.
 */
final class Copier {
  private static final Unsafe UNSAFE = Unsafe.getUnsafe();
  private static final Map<Class<?>, Plan> PLANS = new ConcurrentHashMap<>();
  private static final byte REFERENCE = 0;
  private static final String[] SHARED = {
    "java.lang.",
    "java.io.File",
    "java.nio.Direct",
    "java.nio.Heap",
    "java.nio.file.",
    "java.util.regex.",
    "java.util.UUID",
    "java.util.Random",
    "java.text.",
    "java.time.",
    "java.security.",
    "java.net.",
    "sun.",
    "jdk.",
    "com.yammer.",
    "org.slf4j.",
    "com.typesafe.",
    "org.apache.logging.",
    "com.fasterxml.",
    "org.apache.kafka.common.metrics.",
    "org.apache.kafka.common.config.",
    "org.apache.kafka.common.message.",
    "org.apache.kafka.common.metadata.",
    "org.apache.kafka.common.requests.",
    "org.apache.kafka.common.protocol.",
    "org.apache.kafka.common.Uuid",
    "org.apache.kafka.common.Topic",
    "org.apache.kafka.common.Node",
    "org.apache.kafka.common.utils.",
    "org.apache.kafka.common.record.internal.MemoryRecords",
    "org.apache.kafka.common.record.MemoryRecords",
    "org.apache.kafka.image.",
    "org.apache.kafka.server.metrics.",
    "org.apache.kafka.server.config.",
    "org.apache.kafka.server.quota.",
    "org.apache.kafka.storage.log.metrics.",
    "org.apache.kafka.storage.internals.log.LogConfig",
    "org.apache.kafka.storage.internals.log.CleanerConfig",
    "org.apache.kafka.storage.internals.log.ProducerStateManagerConfig",
    "org.apache.kafka.storage.internals.log.LogOffsetMetadata",
    "org.apache.kafka.storage.internals.log.EpochEntry",
    "org.apache.kafka.server.replica.ReplicaState",
    "org.apache.kafka.metadata.PartitionRegistration",
    "org.apache.kafka.metadata.BrokerRegistration",
    "org.apache.kafka.metadata.VersionRange",
    "org.apache.kafka.metadata.KafkaConfigSchema",
    "scala.math.",
    "kafka.server.KafkaConfig",
    "kafka.server.QuotaFactory",
    "kafka.server.ReplicationQuotaManager",
    "kafka.server.ClientQuotaManager",
    "kafka.server.BrokerTopicStats",
  };

  private Copier() {}

  /** How a class is copied: where its references lie, and its other fields with their sizes. */
  private static final class Plan {
    final Class<?> type;
    final boolean shared;
    final long[] references;
    final long[] fields;
    final byte[] sizes;

    Plan(
        Class<?> type, boolean shared, List<Long> references, List<Long> fields, List<Byte> sizes) {
      this.type = type;
      this.shared = shared;
      this.references = references.stream().mapToLong(x -> x).toArray();
      this.fields = fields.stream().mapToLong(x -> x).toArray();
      this.sizes = new byte[sizes.size()];
      for (int i = 0; i < this.sizes.length; i++) {
        this.sizes[i] = sizes.get(i);
      }
    }
  }

  /** A copy of this object and of all that it leads to. */
  static <T> T copy(T original) {
    @SuppressWarnings("unchecked")
    T made = (T) new Copying().copy(original);
    return made;
  }

  /** How many objects a copy of this one has, by class; to see what a copy costs. */
  static Map<String, Integer> census(Object original) {
    Copying copying = new Copying();
    copying.copy(original);
    Map<String, Integer> count = new java.util.TreeMap<>();
    copying.made.keySet().forEach(o -> count.merge(o.getClass().getName(), 1, Integer::sum));
    return count;
  }

  private static final class Copying {
    final IdentityHashMap<Object, Object> made = new IdentityHashMap<>(4096);
    final ArrayDeque<Object> open = new ArrayDeque<>(1024);

    Object copy(Object original) {
      Object result = copied(original);
      for (Object next = open.poll(); next != null; next = open.poll()) {
        fill(next, made.get(next));
      }
      return result;
    }

    private Object copied(Object original) {
      if (original == null) {
        return null;
      }
      Class<?> type = original.getClass();
      if (type.isArray()) {
        return array(original, type);
      }
      Plan plan = PLANS.get(type);
      if (plan == null) {
        plan = plan(type);
        PLANS.put(type, plan);
      }
      if (plan.shared) {
        return original;
      }
      Object known = made.get(original);
      if (known != null) {
        return known;
      }
      Object twin;
      try {
        twin = UNSAFE.allocateInstance(type);
      } catch (InstantiationException problem) {
        throw new IllegalStateException(problem);
      }
      for (int i = 0; i < plan.fields.length; i++) {
        long at = plan.fields[i];
        switch (plan.sizes[i]) {
          case 1 -> UNSAFE.putByte(twin, at, UNSAFE.getByte(original, at));
          case 2 -> UNSAFE.putShort(twin, at, UNSAFE.getShort(original, at));
          case REFERENCE -> UNSAFE.putReference(twin, at, UNSAFE.getReference(original, at));
          case 4 -> UNSAFE.putInt(twin, at, UNSAFE.getInt(original, at));
          default -> UNSAFE.putLong(twin, at, UNSAFE.getLong(original, at));
        }
      }
      made.put(original, twin);
      if (plan.references.length > 0) {
        open.add(original);
      }
      return twin;
    }

    private Object array(Object original, Class<?> type) {
      int length = Array.getLength(original);
      if (length == 0) {
        return original;
      }
      Object known = made.get(original);
      if (known != null) {
        return known;
      }
      Object twin = Array.newInstance(type.getComponentType(), length);
      made.put(original, twin);
      if (type.getComponentType().isPrimitive()) {
        System.arraycopy(original, 0, twin, 0, length);
      } else {
        open.add(original);
      }
      return twin;
    }

    private void fill(Object original, Object twin) {
      if (original instanceof Object[] from) {
        Object[] to = (Object[]) twin;
        for (int i = 0; i < from.length; i++) {
          to[i] = copied(from[i]);
        }
        return;
      }
      for (long at : PLANS.get(original.getClass()).references) {
        UNSAFE.putReference(twin, at, copied(UNSAFE.getReference(original, at)));
      }
    }
  }

  private static boolean shared(Class<?> type) {
    if (type.isEnum()
        || Enum.class.isAssignableFrom(type)
        || ClassLoader.class.isAssignableFrom(type)) {
      return true;
    }
    String name = type.getName();
    if (name.endsWith("$") && !name.startsWith("insync.")) {
      return true; // a Scala object: there is one
    }
    for (String prefix : SHARED) {
      if (name.startsWith(prefix)) {
        return true;
      }
    }
    return false;
  }

  private static Plan plan(Class<?> type) {
    List<Long> references = new ArrayList<>();
    List<Long> fields = new ArrayList<>();
    List<Byte> sizes = new ArrayList<>();
    boolean shared = shared(type);
    for (Class<?> c = type; c != null && !shared; c = c.getSuperclass()) {
      for (Field field : c.getDeclaredFields()) {
        if (Modifier.isStatic(field.getModifiers())) {
          continue;
        }
        long at = UNSAFE.objectFieldOffset(field);
        Class<?> of = field.getType();
        if (!of.isPrimitive() && c != Thread.class) {
          references.add(at);
        } else {
          fields.add(at);
          sizes.add(of.isPrimitive() ? size(of) : REFERENCE);
        }
      }
    }
    boolean stateless = !shared && type.isHidden() && references.isEmpty() && fields.isEmpty();
    return new Plan(type, shared || stateless, references, fields, sizes);
  }

  private static byte size(Class<?> primitive) {
    if (primitive == long.class || primitive == double.class) {
      return 8;
    }
    if (primitive == int.class || primitive == float.class) {
      return 4;
    }
    return (byte) (primitive == short.class || primitive == char.class ? 2 : 1);
  }
}
