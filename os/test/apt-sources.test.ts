import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deriveBackports, hasSuite, parseDeb822Sources, parseOneLineSources } from '../src/apt/apt-sources.ts';

const CLOUD_IMAGE = `# See the sources.list(5) manual page.
Types: deb deb-src
URIs: mirror+file:///etc/apt/mirrors/debian.list
Suites: bookworm bookworm-updates
Components: main

Types: deb deb-src
URIs: mirror+file:///etc/apt/mirrors/debian-security.list
Suites: bookworm-security
Components: main
`;

const CONTAINER = `Types: deb
# a comment between fields
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/archive.gpg

Types: deb
URIs: http://archive.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/archive.gpg
`;

const OPTIONS = '[arch=amd64 signed-by=/etc/apt/keyrings/own.asc]';
const ONE_LINE = `# deb http://old.example/debian bookworm main
deb cdrom:[Debian GNU/Linux 12 _Bookworm_]/ bookworm main
deb ${OPTIONS} https://mirror.example/debian/ bookworm main contrib non-free-firmware # main archive
deb-src https://mirror.example/debian/ bookworm main
deb https://mirror.example/debian-security/ bookworm-security main
`;

test('backports use the archive and key of the release', () => {
  const text = deriveBackports(parseDeb822Sources(CONTAINER), 'bookworm', 'why');
  assert.ok(text !== null);
  assert.deepEqual(parseDeb822Sources(text), [
    {
      uri: 'http://archive.example/debian',
      suite: 'bookworm-backports',
      components: ['main'],
      signedBy: '/usr/share/keyrings/archive.gpg',
    },
  ]);
});

test('an archive named by a mirror list is copied unchanged', () => {
  const text = deriveBackports(parseDeb822Sources(CLOUD_IMAGE), 'bookworm', 'why');
  assert.match(text ?? '', /^URIs: mirror\+file:\/\/\/etc\/apt\/mirrors\/debian\.list$/m);
  assert.doesNotMatch(text ?? '', /Signed-By/);
});

test('one-line sources keep their options; comments, deb-src lines and other suites are skipped', () => {
  const sources = parseOneLineSources(ONE_LINE);
  assert.deepEqual(
    sources.map(({ uri, suite }) => [uri, suite]),
    [
      ['cdrom:[Debian GNU/Linux 12 _Bookworm_]/', 'bookworm'],
      ['https://mirror.example/debian/', 'bookworm'],
      ['https://mirror.example/debian-security/', 'bookworm-security'],
    ],
  );
  assert.deepEqual(sources[1]?.components, ['main', 'contrib', 'non-free-firmware']);
  assert.match(deriveBackports(sources, 'bookworm', 'why') ?? '', /^Signed-By: \/etc\/apt\/keyrings\/own\.asc$/m);
});

test('an inline key is copied whole', () => {
  const block = ' -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mDMEY\n -----END PGP PUBLIC KEY BLOCK-----';
  const archive = 'Types: deb\nURIs: https://mirror.example/debian\nSuites: bookworm\nComponents: main\n';
  const own = `${archive}Signed-By:\n${block}\n`;
  const text = deriveBackports(parseDeb822Sources(own), 'bookworm', 'why');
  assert.ok(text?.includes(`Signed-By:\n${block}\n`), text ?? 'nothing');
});

test('disabled sources are ignored, both as archive and as backports', () => {
  const disabled = CONTAINER.replace('Types: deb\n', 'Enabled: no\nTypes: deb\n');
  assert.equal(deriveBackports(parseDeb822Sources(disabled), 'bookworm', 'why'), null);
  const withBackports =
    `${CONTAINER}\nTypes: deb\nURIs: http://archive.example/debian\n` +
    'Suites: bookworm-backports\nComponents: main\n';
  assert.equal(hasSuite(parseDeb822Sources(withBackports), 'bookworm-backports'), true);
  assert.equal(
    hasSuite(
      parseDeb822Sources(withBackports.replace(/\nTypes: deb\nURIs.*\nSuites: bookworm-b/, '\nEnabled: no$&')),
      'bookworm-backports',
    ),
    false,
  );
});

test('a host without the release itself has no backports to derive', () => {
  assert.equal(deriveBackports(parseDeb822Sources(CONTAINER), 'trixie', 'why'), null);
  assert.equal(
    deriveBackports(parseOneLineSources('deb https://mirror.example/debian bookworm contrib'), 'bookworm', 'why'),
    null,
  );
});
