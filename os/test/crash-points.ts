// Crash points of a test file.

/**
 * The points with these prefixes. Throws for a prefix without a point, which tests would leave out
 * silently.
 */
export function pointsOf<Point extends string>(points: readonly Point[], ...prefixes: readonly string[]): Point[] {
  return prefixes.flatMap((prefix) => {
    const found = points.filter((point) => point.startsWith(prefix));
    if (found.length === 0) throw new Error(`no crash point begins with '${prefix}'`);
    return found;
  });
}
