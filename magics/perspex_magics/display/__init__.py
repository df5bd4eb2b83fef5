"""How things look: safe markup, notices, arrays, trees and functions as text and HTML."""
