const VERSION = /^\d+(?:\.\d+)*/;

/** Whether a version is newer than another. Text that is no version is never newer. */
export function isNewer(version: string, than: string): boolean {
  const [[now], [then]] = [VERSION.exec(version) ?? [], VERSION.exec(than) ?? []];
  return now !== undefined && then !== undefined && now.localeCompare(then, 'en', { numeric: true }) > 0;
}
