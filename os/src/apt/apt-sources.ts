// Parses a host's apt sources and derives its backports source: same archive, same key, another
// suite. Pure; contains no archive address.

/** A package source, from either of apt's two file formats. */
export interface AptSource {
  uri: string;
  suite: string;
  components: string[];
  /** Path of a key ring, or the lines of an inline key block. */
  signedBy: string | null;
}

/** Parses a `.list` file, one source per line. Skips comments and `deb-src`. */
export function parseOneLineSources(text: string): AptSource[] {
  const sources: AptSource[] = [];
  for (const line of text.split('\n')) {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(cdrom:\[[^\]]*\]\S*|\S+)\s+(\S+)\s*([^#]*)/.exec(line);
    if (match === null) continue;

    const [, options = '', uri = '', suite = '', components = ''] = match;
    const signedBy = /(?:^|\s)signed-by=(\S+)/i.exec(options)?.[1] ?? null;
    sources.push({ uri, suite, components: words(components), signedBy });
  }
  return sources;
}

/**
 * Parses a deb822 `.sources` file: every combination of its URIs and suites. Skips disabled sources
 * and those without `deb`.
 */
export function parseDeb822Sources(text: string): AptSource[] {
  return text.split(/\n\s*\n/).flatMap((paragraph) => {
    const fields = parseFields(paragraph);
    const enabled = !/^(no|false|without|off|disable|0)$/i.test(fields.get('enabled')?.trim() ?? 'yes');
    if (!enabled || !words(fields.get('types') ?? '').includes('deb')) return [];

    const components = words(fields.get('components') ?? '');
    const signedBy = fields.get('signed-by') ?? null;
    return words(fields.get('uris') ?? '').flatMap((uri) =>
      words(fields.get('suites') ?? '').map((suite) => ({ uri, suite, components, signedBy })),
    );
  });
}

/** True if the host already has the suite's main component. */
export function hasSuite(sources: readonly AptSource[], suite: string): boolean {
  return sources.some((source) => source.suite === suite && source.components.includes('main'));
}

/**
 * Derives a deb822 file for a release's backports from the host's source of the release. Null if
 * there is no such source; security and updates are other suites, often in other archives, and
 * installation media have no backports. `comment` becomes the first line.
 */
export function deriveBackports(sources: readonly AptSource[], codename: string, comment: string): string | null {
  const release = sources.find(
    (source) => source.suite === codename && source.components.includes('main') && !source.uri.startsWith('cdrom:'),
  );
  if (release === undefined) return null;

  const lines = [`# ${comment}`, 'Types: deb', `URIs: ${release.uri}`];
  lines.push(`Suites: ${codename}-backports`, 'Components: main');
  if (release.signedBy !== null)
    lines.push(`Signed-By:${release.signedBy.startsWith('\n') ? '' : ' '}${release.signedBy}`);

  return `${lines.join('\n')}\n`;
}

/**
 * Fields of a paragraph, names in lowercase. A continued value keeps its line breaks and
 * indentation.
 */
function parseFields(paragraph: string): Map<string, string> {
  const fields = new Map<string, string>();
  let name: string | null = null;
  for (const line of paragraph.split('\n')) {
    if (line.startsWith('#')) continue;

    const start = /^([A-Za-z0-9-]+):\s*(.*)$/.exec(line);
    if (start !== null) {
      name = (start[1] ?? '').toLowerCase();
      fields.set(name, (start[2] ?? '').trimEnd());
    } else if (name !== null && /^\s+\S/.test(line)) {
      fields.set(name, `${fields.get(name) ?? ''}\n${line.trimEnd()}`);
    }
  }
  return fields;
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}
