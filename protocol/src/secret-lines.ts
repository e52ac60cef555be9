// The form of a file with a rotating secret (secret key, host token): a secret per line, the
// current one first. All are accepted; only the first one seals, signs or is sent.

/** Bounds the work of a check against every secret. A rotation needs two. */
export const MOST_SECRETS = 8;

/** The secrets of a file. Throws if it has none, too many, or one twice, without quoting one. */
export function secretLines(text: string): [string, ...string[]] {
  const [current, ...former] = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (current === undefined) throw new Error('the file is empty');
  const secrets: [string, ...string[]] = [current, ...former];
  if (secrets.length > MOST_SECRETS)
    throw new Error(`the file has ${secrets.length} secrets, the limit is ${MOST_SECRETS}: remove former ones`);
  const repeated = secrets.findIndex((secret, index) => secrets.indexOf(secret) < index);
  if (repeated !== -1) throw new Error(`secret ${repeated + 1} of the file repeats an earlier one`);
  return secrets;
}
