<?xml version="1.0"?>
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="html" indent="yes" encoding="UTF-8"/>
  <xsl:param name="pass" select="0"/>
  <xsl:key name="by-customer" match="order" use="@customer"/>
  <xsl:key name="by-item" match="line" use="item"/>

  <xsl:template match="/">
    <html>
      <head><title>Orders, pass <xsl:value-of select="$pass"/></title></head>
      <body>
        <h1><xsl:value-of select="count(//order)"/> orders</h1>
        <xsl:for-each select="//order[generate-id() = generate-id(key('by-customer', @customer)[1])]">
          <xsl:sort select="number(substring(@customer, 2))" data-type="number"/>
          <xsl:call-template name="customer"/>
        </xsl:for-each>
        <h1>Items</h1>
        <xsl:apply-templates select="//line[generate-id() = generate-id(key('by-item', item)[1])]" mode="item">
          <xsl:sort select="sum(key('by-item', item)/quantity)" data-type="number" order="descending"/>
          <xsl:sort select="item"/>
        </xsl:apply-templates>
      </body>
    </html>
  </xsl:template>

  <xsl:template name="customer">
    <h2>Customer <xsl:value-of select="@customer"/></h2>
    <table>
      <xsl:apply-templates select="key('by-customer', @customer)">
        <xsl:sort select="count(line)" data-type="number"/>
        <xsl:sort select="@id" data-type="number"/>
      </xsl:apply-templates>
    </table>
  </xsl:template>

  <xsl:template match="order">
    <tr class="{translate(@customer, 'c', 'C')}">
      <td><xsl:number value="position()" format="i"/></td>
      <td><xsl:value-of select="@id"/></td>
      <td>
        <xsl:call-template name="total">
          <xsl:with-param name="lines" select="line"/>
        </xsl:call-template>
      </td>
      <td><xsl:apply-templates select="line"/></td>
    </tr>
  </xsl:template>

  <xsl:template match="line">
    <xsl:variable name="price" select="format-number(price, '#,##0.00')"/>
    <xsl:choose>
      <xsl:when test="quantity &gt; 15"><b><xsl:value-of select="concat(item, ': ', quantity, ' x ', $price)"/></b></xsl:when>
      <xsl:when test="contains(note, 'q') and string-length(note) mod 2 = 0"><i><xsl:value-of select="item"/></i></xsl:when>
      <xsl:otherwise><xsl:value-of select="item"/></xsl:otherwise>
    </xsl:choose>
    <xsl:apply-templates select="note"/>
  </xsl:template>

  <xsl:template match="note"><span><xsl:apply-templates/></span></xsl:template>
  <xsl:template match="b"><strong><xsl:apply-templates/></strong></xsl:template>
  <xsl:template match="i"><em><xsl:apply-templates/></em></xsl:template>
  <xsl:template match="text()"><xsl:value-of select="normalize-space(.)"/></xsl:template>

  <xsl:template match="line" mode="item">
    <p><xsl:value-of select="item"/>: <xsl:value-of select="sum(key('by-item', item)/quantity)"/></p>
  </xsl:template>

  <!-- Sums quantity times price, one recursion per line. -->
  <xsl:template name="total">
    <xsl:param name="lines"/>
    <xsl:param name="sum" select="0"/>
    <xsl:choose>
      <xsl:when test="$lines">
        <xsl:call-template name="total">
          <xsl:with-param name="lines" select="$lines[position() &gt; 1]"/>
          <xsl:with-param name="sum" select="$sum + $lines[1]/quantity * $lines[1]/price"/>
        </xsl:call-template>
      </xsl:when>
      <xsl:otherwise><xsl:value-of select="format-number($sum, '0.00')"/></xsl:otherwise>
    </xsl:choose>
  </xsl:template>
</xsl:stylesheet>
