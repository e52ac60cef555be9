// Names of downloads in Content-Disposition.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attachment } from '../../../src/rules/files/download-name.ts';

test('a plain name is quoted; others have a form in ASCII and one in UTF-8', () => {
  for (const [name, expected] of [
    ['report.pdf', 'attachment; filename="report.pdf"'],
    ['a b;c=d.txt', 'attachment; filename="a b;c=d.txt"'],
    ['say "hi".txt', `attachment; filename="say _hi_.txt"; filename*=UTF-8''say%20%22hi%22.txt`],
    ['100%.txt', `attachment; filename="100_.txt"; filename*=UTF-8''100%25.txt`],
    ["it's (1)*.txt", `attachment; filename="it's (1)*.txt"`],
    ["ü's (1)*.txt", `attachment; filename="_'s (1)*.txt"; filename*=UTF-8''%C3%BC%27s%20%281%29%2A.txt`],
    ['報告.pdf', `attachment; filename="__.pdf"; filename*=UTF-8''%E5%A0%B1%E5%91%8A.pdf`],
    ['a😀b', `attachment; filename="a_b"; filename*=UTF-8''a%F0%9F%98%80b`],
  ] as const)
    assert.equal(attachment(name), expected);
});

test('no name adds a header or a parameter, hides its ending or names a folder', () => {
  for (const [name, ascii] of [
    ['a\r\nSet-Cookie: x=1', 'a__Set-Cookie: x=1'],
    ['a\u{202e}fdp.exe', 'a_fdp.exe'],
    ['a\u{2066}b\u{200b}c\u{feff}', 'a_b_c_'],
    ['a\0b\x7f', 'a_b_'],
    ['..\\..\\a/b', '.._.._a_b'],
    ['\ud800x', '_x'],
  ] as const)
    assert.equal(attachment(name), `attachment; filename="${ascii}"`);
  assert.ok(attachment('😀'.repeat(300)).length < 4_000);
  for (let code = 0; code < 0x1_0000; code += 1) {
    const header = attachment(`x${String.fromCodePoint(code)}y`);
    assert.match(
      header,
      /^attachment; filename="[\x20\x21\x23-\x7e]*"(?:; filename\*=UTF-8''[A-Za-z0-9%._~!$&+^`|-]*)?$/,
    );
  }
});
