// `npm run docs:cli`: the reference of all commands as Markdown, made from their specs.
import { clientChapters } from '../src/chapters.ts';
import { machineChapters } from '../src/machine/verbs.ts';
import { buildProgram, sharedOptions } from '../src/program/program.ts';
import type { Chapter, CommandSpec, GroupSpec } from '../src/program/command-spec.ts';

const INTRODUCTION = `# The commands of berth

Printed from the specs of the commands (\`npm run docs:cli\`); \`berth COMMAND --help\` says the same. How to install and sign in, the environment and the exit codes:
[cli/README.md](../cli/README.md).

Every command that calls the API takes these, and \`--json\` unless it says otherwise:
`;

/** Of commands as they are in a checkout; the package has those that call the API. */
export function reference(chapters: readonly Chapter[] = [...clientChapters, ...machineChapters]): string {
  const shared = buildProgramOf(chapters);
  const parts = [INTRODUCTION, table(sharedOptions({ json: true }).map(({ flags, about }) => [`\`${flags}\``, about]))];
  for (const { heading, entries } of chapters) {
    parts.push(`## ${heading}`);
    for (const entry of entries)
      parts.push(...('commands' in entry ? sectionsOfGroup(entry, shared) : sectionsOf(entry, [entry.name], shared)));
  }
  return `${parts.join('\n\n').replaceAll(/\n{3,}/g, '\n\n')}\n`;
}

type UsageOf = (words: readonly string[]) => string;

/** The line that help begins with, for the words of a command. */
function buildProgramOf(chapters: readonly Chapter[]): UsageOf {
  const { stdin, stdout, stderr } = process;
  const program = buildProgram({ chapters, version: '', streams: { stdin, stdout, stderr }, environment: {} }, () =>
    Promise.resolve(),
  );
  return (words) => {
    let command = program;
    for (const word of words) {
      const below = command.commands.find((each) => each.name() === word);
      if (below === undefined) throw new Error(`there is no command ${words.join(' ')}`);
      command = below;
    }
    return command.createHelp().commandUsage(command);
  };
}

function sectionsOfGroup(group: GroupSpec, usageOf: UsageOf): string[] {
  const also = group.alias === undefined ? '' : ` Also \`berth ${group.alias}\`.`;
  return [
    `### berth ${group.name}`,
    `${sentence(group.summary)}${also}`,
    ...group.commands.flatMap((spec) => sectionsOf(spec, [group.name, spec.name], usageOf)),
  ];
}

function sectionsOf(spec: CommandSpec, words: readonly string[], usageOf: UsageOf): string[] {
  if (spec.hidden === true) return [];
  const taken = [
    ...(spec.arguments ?? []).map(({ name, about, choices }) => [`\`${name}\``, withChoices(about, choices)]),
    ...(spec.options ?? []).map(({ flags, about, choices, default: value, required }) => [
      `\`${flags}\``,
      `${withChoices(about, choices)}${value === undefined ? '' : ` (default: ${String(value)})`}${required === true ? '; required' : ''}`,
    ]),
  ];
  return [
    `${'#'.repeat(words.length + 2)} berth ${words.join(' ')}`,
    `${sentence(spec.summary)}${spec.local !== true && spec.json === false ? ' Has no `--json`.' : ''}`,
    `\`\`\`\n${usageOf(words)}\n\`\`\``,
    ...(taken.length === 0 ? [] : [table(taken)]),
    ...(spec.details === undefined ? [] : [spec.details]),
    `\`\`\`sh\n${spec.examples.join('\n')}\n\`\`\``,
  ];
}

function sentence(summary: string): string {
  // Names of programs stay as they are.
  return summary.startsWith('ssh ') ? `${summary}.` : `${summary[0]?.toUpperCase()}${summary.slice(1)}.`;
}

function withChoices(about: string, choices: readonly string[] | undefined): string {
  return choices === undefined ? about : `${about} (${choices.map((choice) => `\`${choice}\``).join(', ')})`;
}

function table(rows: readonly (readonly string[])[]): string {
  const cell = (text = ''): string => text.replaceAll('|', String.raw`\|`);
  return ['| | |', '| --- | --- |', ...rows.map(([name, about]) => `| ${cell(name)} | ${cell(about)} |`)].join('\n');
}

if (import.meta.main) process.stdout.write(reference());
