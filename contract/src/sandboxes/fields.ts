// Fields shared by sandboxes and the defaults of projects.
import { z } from 'zod';
import { IDLE_MINUTES, METADATA_LIMITS, REPOSITORY_CHARACTERS } from '../route/limits.ts';
import { text } from '../route/text.ts';

/** spec: Sandbox, `agent`: neutral stand-ins for the two supported agents. */
export const agent = z.enum(['agent_one', 'agent_two']).meta({
  id: 'Agent',
  description: 'Coding agent of the sandbox. Required even if the caller runs a different agent.',
});
export type Agent = z.infer<typeof agent>;

export const persistencePolicy = z.enum(['always_on', 'sleep_resume']).meta({
  id: 'PersistencePolicy',
  description:
    '`always_on`: never sleeps by itself and is billed continuously. `sleep_resume`: sleeps when idle, keeps ' +
    'its disk, and is billed while awake.',
});
export type PersistencePolicy = z.infer<typeof persistencePolicy>;

export const DEFAULT_PERSISTENCE_POLICY: PersistencePolicy = 'sleep_resume';

const REPOSITORY_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\/(?!\.{1,2}$)[A-Za-z0-9._-]+$/;

/**
 * Scheme, host with optional port, and at least one path segment. Rejects empty, `.` and `..`
 * segments, and encoded dots, slashes and control characters.
 */
export const REPOSITORY_URL =
  /^(https?):\/\/([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[1-9]\d{0,4})?)((?:\/(?!\.{1,2}(?:\/|$))(?:[A-Za-z0-9._~+,=@-]|%(?!2[EeFf]|7[Ff])[2-7][0-9A-Fa-f])+)+)$/;

/**
 * `owner/repo` on the service's git host, or the full URL of a repository. The operator configures
 * which hosts are allowed.
 */
export const repository = z
  .string()
  .check((context) => {
    const { value: input, issues } = context;
    const isUrl = /^[a-z][a-z0-9+.-]*:/i.test(input);
    const maximum = isUrl ? REPOSITORY_CHARACTERS.url : REPOSITORY_CHARACTERS.name;
    if (input.length > maximum) {
      issues.push({ code: 'too_big', origin: 'string', maximum, inclusive: true, input });
    } else if (isUrl && !REPOSITORY_URL.test(input)) {
      issues.push({
        code: 'custom',
        input,
        message: 'must be the https URL of a repository, without user name, query, fragment or trailing slash',
      });
    } else if (!isUrl && !REPOSITORY_NAME.test(input)) {
      issues.push({ code: 'custom', input, message: 'must have the form owner/repo' });
    }
  })
  .describe("`owner/repo` on the service's git host, or the full https URL of a repository.");

/** The part of the rule that the published pattern omits. */
export const BRANCH_RULE =
  'Accepted by `git check-ref-format --branch`: not `HEAD` or `@`, and without `..`, `/.`, `//`, `@{`, Unicode white ' +
  'space and parts ending with `.lock`.';

/** As the inside of a character class: ASCII and Latin-1 characters that no branch name has. */
const NEVER_IN_BRANCH = String.raw`\x00-\x20\x7f-\xa0~^:?*\[\\`;

/**
 * A branch name accepted by `git check-ref-format --branch`, without control characters and Unicode
 * white space.
 */
export const branchName = z
  .string()
  .min(1)
  .max(255)
  .regex(
    /^(?!HEAD$|@$|[-./])(?!.*(?:\.\.|\/\.|\/\/|@\{|\.lock(?:\/|$)))[^\s~^:?*[\\\p{Cc}\p{Cs}]+(?<![./])$/u,
    'must be a git branch name',
  )
  .meta({
    // The part of the rule that needs neither look-around nor Unicode properties.
    pattern: `^[^-./${NEVER_IN_BRANCH}](?:[^${NEVER_IN_BRANCH}]*[^./${NEVER_IN_BRANCH}])?$`,
    description: `Name of a git branch. ${BRANCH_RULE}`,
  });

const metadataValue = z.union([text(0, METADATA_LIMITS.valueCharacters), z.number(), z.boolean()]);

/** Size of a sandbox in responses. */
export const allocation = z
  .strictObject({ vcpu: z.int().positive(), memoryGb: z.int().positive(), diskGb: z.int().positive() })
  .meta({ id: 'Allocation', description: 'vCPUs, memory and disk of a sandbox.' });

/** Labels in responses. */
export const labels = z
  .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
  .describe('Labels; values are strings, numbers or booleans.');

/** Labels in requests (spec: Sandbox, `metadata`). */
export const metadata = z
  .record(text(1, METADATA_LIMITS.keyCharacters), metadataValue)
  .check((context) => {
    const keys = Object.keys(context.value).length;
    if (keys <= METADATA_LIMITS.keys) return;
    context.issues.push({
      code: 'custom',
      input: context.value,
      message: `must have at most ${METADATA_LIMITS.keys} keys, has ${keys}`,
    });
  })
  .meta({
    maxProperties: METADATA_LIMITS.keys,
    description: `Labels; values are strings, numbers or booleans; at most ${METADATA_LIMITS.keys} keys.`,
  });

/** Idle time of a sandbox in requests; null: the project's. */
export const idleMinutes = z
  .int()
  .min(IDLE_MINUTES.min)
  .max(IDLE_MINUTES.max)
  .describe("Minutes without use until a `sleep_resume` sandbox sleeps by itself; 0: never; null: the project's.");
