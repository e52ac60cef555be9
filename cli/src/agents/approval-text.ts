// Shows an approval in full. Its text comes from the guest: each row begins with a bar that the
// text cannot draw over, as rows are wrapped here and not by the terminal.
import stringWidth from 'string-width';
import type { AgentPendingInput } from '@berth/sdk';
import { plainText } from '../output/plain-text.ts';

const BAR = '│ ';
/** Without a terminal, or with one of unknown width. */
const DEFAULT_COLUMNS = 100;
const LEAST_COLUMNS = 20;

export function approvalLines(approval: AgentPendingInput, columns = DEFAULT_COLUMNS): string[] {
  const { requestId, kind, title, detail, workingDirectory, truncated } = approval;
  const width = Math.max(LEAST_COLUMNS, columns) - BAR.length - 1;
  const body = (text: string): string[] => text.split(/\r?\n/).flatMap((line) => rows(plainText(line), width));
  const about = [`request ${JSON.stringify(requestId)}, ${kind}`, ...(title === null ? [] : [title])];
  const lines = ['The agent asks for approval', ...about.flatMap(body).map((row) => BAR + row)];
  if (workingDirectory !== null) lines.push('in the folder', ...body(workingDirectory).map((row) => BAR + row));
  if (detail !== null) lines.push('detail', ...body(detail).map((row) => BAR + row));
  if (truncated) lines.push('The detail is longer; its end is not shown.');
  return lines;
}

/** The text in rows of at most `width` terminal cells; at least one. */
function rows(text: string, width: number): string[] {
  const all: string[] = [];
  let row = '';
  let cells = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    const more = stringWidth(segment);
    if (cells + more > width) {
      all.push(row);
      [row, cells] = ['', 0];
    }
    row += segment;
    cells += more;
  }
  return [...all, row];
}
