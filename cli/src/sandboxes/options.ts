// Options with the fields of a create request; create-body.ts builds the body.
import {
  END_USER_ID_CHARACTERS,
  IDLE_MINUTES,
  NAME_CHARACTERS,
  REPOSITORY_CHARACTERS,
  TTL_SECONDS,
} from '@berth/sdk/limits';
import { EGRESS_ABOUT, parseEgress } from './egress.ts';
import { durationSeconds, keyValue, textOf, wholeNumber } from '../program/option-values.ts';
import type { OptionSpec } from '../program/command-spec.ts';

/** Longest branch name that git accepts. */
const BRANCH_CHARACTERS = 255;

/** An end user is the key of an ensured sandbox, by default. */
const END_USER_FIELDS = ['endUserId', 'getOrCreate.key'];

export const sandboxOptions: readonly OptionSpec[] = [
  { flags: '--name <name>', about: 'name (default: generated)', parse: textOf(1, NAME_CHARACTERS) },
  {
    flags: '--agent <agent>',
    about: 'coding agent',
    choices: ['agent_one', 'agent_two'],
    default: 'agent_one',
  },
  {
    flags: '--sandbox-profile <profile>',
    about: "workload profile, which sets the size (default: the project's)",
    fields: ['profile'],
    choices: ['auto', 'agent-small', 'agent-standard', 'build-heavy', 'browser-heavy', 'repo-large', 'long-running'],
  },
  {
    flags: '--size <size>',
    about: 'VM size, overrides the profile',
    fields: ['machineSize'],
    choices: ['small', 'medium', 'large', 'xlarge'],
  },
  {
    flags: '--end-user <id>',
    about: 'id of your end user',
    parse: textOf(1, END_USER_ID_CHARACTERS),
    fields: END_USER_FIELDS,
  },
  { flags: '--metadata <key=value>', about: 'label, repeatable', parse: keyValue },
  {
    flags: '--idle-minutes <n>',
    about: "minutes without use until it sleeps; 0: never (default: the project's)",
    parse: wholeNumber(IDLE_MINUTES.min, IDLE_MINUTES.max),
  },
  {
    flags: '--mode <mode>',
    about: 'ephemeral: destroyed after its time to live (default: persistent, ephemeral with --ttl-seconds)',
    choices: ['persistent', 'ephemeral'],
  },
  {
    flags: '--ttl-seconds <time>',
    about:
      'time to live in seconds, or as 45m or 2h; requires a project that allows it: ' +
      'berth project update --use-case external',
    parse: durationSeconds(TTL_SECONDS.min, TTL_SECONDS.max),
  },
  {
    flags: '--persistence-policy <policy>',
    about: "keep running or sleep when idle (default: the project's)",
    choices: ['always_on', 'sleep_resume'],
  },
  {
    flags: '--repository <repository>',
    about:
      'repository to clone into /code: owner/repo, or https URL on a host that the operator allows with ' +
      "BERTH_GIT_ALLOW_URLS (default: the project's)",
    parse: textOf(1, REPOSITORY_CHARACTERS.url),
  },
  { flags: '--no-repository', about: "do not clone the project's repository" },
  {
    flags: '--branch <branch>',
    about: "branch of the repository (default: the project's)",
    parse: textOf(1, BRANCH_CHARACTERS),
  },
  { flags: '--no-branch', about: "clone the default branch of the repository, not the project's" },
  { flags: '--egress <policy>', about: `network: ${EGRESS_ABOUT} (default: the project's)`, parse: parseEgress },
  {
    flags: '--ssh-key <file>',
    about: 'file with the public key for ssh access, such as ~/.ssh/id_ed25519.pub',
    fields: ['sshPublicKey'],
  },
];
