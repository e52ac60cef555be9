// What a sandbox is made of, as options: the fields of the API's create. sandbox-spec.ts makes
// those fields of them.
import { END_USER_ID_CHARACTERS, NAME_CHARACTERS, REPOSITORY_CHARACTERS, TTL_SECONDS } from '@berth/sdk/limits';
import { durationSeconds, keyValue, textOf } from '../program/option-values.ts';
import type { OptionSpec } from '../program/command-spec.ts';

/** Longest name that git takes for a branch. */
const BRANCH_CHARACTERS = 255;

export const sandboxOptions: readonly OptionSpec[] = [
  { flags: '--name <name>', about: 'its name (default: one is made up)', parse: textOf(1, NAME_CHARACTERS) },
  {
    flags: '--agent <agent>',
    about: 'the coding agent that it is for; any does where you bring your own',
    choices: ['agent_one', 'agent_two'],
    default: 'agent_one',
  },
  {
    flags: '--sandbox-profile <profile>',
    about: "what it is for, which says its size (default: the project's)",
    choices: ['auto', 'agent-small', 'agent-standard', 'build-heavy', 'browser-heavy', 'repo-large', 'long-running'],
  },
  {
    flags: '--size <size>',
    about: 'size of its machine, instead of that of the profile',
    choices: ['small', 'medium', 'large', 'xlarge'],
  },
  { flags: '--end-user <id>', about: 'whom of your own users it is for', parse: textOf(1, END_USER_ID_CHARACTERS) },
  { flags: '--metadata <key=value>', about: 'a label; can be given more than once', parse: keyValue },
  {
    flags: '--mode <mode>',
    about: 'ephemeral: it ends with its time to live (default: persistent, unless --ttl-seconds is given)',
    choices: ['persistent', 'ephemeral'],
  },
  {
    flags: '--ttl-seconds <time>',
    about: 'time to live of an ephemeral one: seconds, or as 45m or 2h',
    parse: durationSeconds(TTL_SECONDS.min, TTL_SECONDS.max),
  },
  {
    flags: '--persistence-policy <policy>',
    about: "whether it sleeps when idle (default: the project's)",
    choices: ['always_on', 'sleep_resume'],
  },
  {
    flags: '--repository <repository>',
    about: "cloned into /code: owner/repo, or an https URL (default: the project's)",
    parse: textOf(1, REPOSITORY_CHARACTERS.url),
  },
  { flags: '--no-repository', about: 'none, though the project has one' },
  {
    flags: '--branch <branch>',
    about: "of the repository (default: the project's)",
    parse: textOf(1, BRANCH_CHARACTERS),
  },
  { flags: '--no-branch', about: 'the one that the repository says, though the project has another' },
  { flags: '--ssh-key <file>', about: 'file with the public key of who may sign in by ssh, as ~/.ssh/id_ed25519.pub' },
];
