// How text of the CLI may be styled, and what is asked to do it.

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

/** The text in the style, or as it is where nothing is to be styled. */
export type Paint = (style: Style, text: string) => string;
