package insync.objects;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import jdk.internal.misc.Unsafe;

/** Private fields and methods of Kafka's classes, where it has no other entrance. */
public final class Fields {
  private static final Unsafe UNSAFE = Unsafe.getUnsafe();

  private Fields() {}

  /** An object without a call of its constructor. */
  public static <T> T allocate(Class<T> type) {
    try {
      return type.cast(UNSAFE.allocateInstance(type));
    } catch (InstantiationException problem) {
      throw new IllegalStateException(problem);
    }
  }

  /** A field that is an object. */
  public static Object get(Object of, String name) {
    return UNSAFE.getReference(of, offset(of.getClass(), name));
  }

  /** Give a field another object. */
  public static void set(Object of, String name, Object value) {
    UNSAFE.putReferenceVolatile(of, offset(of.getClass(), name), value);
  }

  /** Give a field that is true or false another value. */
  public static void set(Object of, String name, boolean value) {
    UNSAFE.putBooleanVolatile(of, offset(of.getClass(), name), value);
  }

  /** A class that is not public. */
  public static Class<?> type(String name) {
    try {
      return Class.forName(name);
    } catch (ClassNotFoundException problem) {
      throw new IllegalStateException(problem);
    }
  }

  /** Whether it has a field of this name. */
  public static boolean has(Object of, String name) {
    return field(of.getClass(), name) != null;
  }

  /** A field that is true or false. */
  public static boolean isTrue(Object of, String name) {
    return UNSAFE.getBoolean(of, offset(of.getClass(), name));
  }

  /** A field that is a long. */
  public static long number(Object of, String name) {
    return UNSAFE.getLong(of, offset(of.getClass(), name));
  }

  private static long offset(Class<?> type, String name) {
    Field field = field(type, name);
    if (field == null) {
      throw new IllegalStateException(type + " has no field " + name);
    }
    return UNSAFE.objectFieldOffset(field);
  }

  private static Field field(Class<?> type, String name) {
    for (Class<?> c = type; c != null; c = c.getSuperclass()) {
      for (Field field : c.getDeclaredFields()) {
        if (field.getName().equals(name)) {
          return field;
        }
      }
    }
    return null;
  }

  /** A method that is not public. */
  public static Method method(Class<?> type, String name, Class<?>... parameters) {
    try {
      Method method = type.getDeclaredMethod(name, parameters);
      method.setAccessible(true);
      return method;
    } catch (NoSuchMethodException problem) {
      throw new IllegalStateException(problem);
    }
  }

  /** Call it. What it throws is thrown. */
  public static Object call(Method method, Object on, Object... given) {
    try {
      return method.invoke(on, given);
    } catch (InvocationTargetException problem) {
      if (problem.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw new IllegalStateException(problem.getCause());
    } catch (IllegalAccessException problem) {
      throw new IllegalStateException(problem);
    }
  }
}
