export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

/** Returns the styled text, or the plain text without colours. */
export type Paint = (style: Style, text: string) => string;
