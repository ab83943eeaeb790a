"""The expression language: ``grammar/*.lark``, its tables, the driver, the tree.

Only :mod:`~fetchc.syntax.expression_parser` and :mod:`~fetchc.syntax.unparse` are for other
packages, and :mod:`~fetchc.syntax.tree` is what they speak of.
"""
